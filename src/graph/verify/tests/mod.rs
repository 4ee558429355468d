mod faults;
mod oracle;
mod programs;
mod properties;

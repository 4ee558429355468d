//! Loops and portable kernels of the CPU.

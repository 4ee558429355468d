//! Convolutions.

#[cfg(test)]
pub mod conv_case;
pub mod convolution;
pub mod portable_conv;

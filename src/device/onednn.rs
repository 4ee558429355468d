//! Finding, opening and calling oneDNN's C API.

//! What element types are called in CUDA C.

use crate::dtype::DType;

/// The type of an element in memory.
pub fn stored(dtype: DType) -> &'static str {
    match dtype {
        DType::Float32 => "float",
        DType::Float64 => "double",
        DType::BFloat16 => "bfloat16",
        DType::Bool => "boolean",
        _ => dtype.name(),
    }
}

/// The type that an element is computed in.
pub fn computed(dtype: DType) -> &'static str {
    match dtype {
        DType::Float16 | DType::BFloat16 => "float",
        DType::Bool => "bool",
        _ => stored(dtype),
    }
}

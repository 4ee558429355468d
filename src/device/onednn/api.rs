//! The subset of oneDNN's C API (version 3) in use: functions and constants.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A handle to an object of the library.
pub type Raw = *mut c_void;
/// Zero for success.
pub type Status = c_int;
/// Destroys an object.
pub type Destroy = unsafe extern "C" fn(Raw) -> Status;
/// Extents or strides: at most [`MAX_RANK`] of them.
pub type Dims = *const i64;

/// The most dimensions of a memory descriptor.
pub const MAX_RANK: usize = 12;
/// The arguments are invalid, or beyond what any implementation accepts.
pub const INVALID_ARGUMENTS: Status = 2;
/// The function is not implemented for these arguments.
pub const UNIMPLEMENTED: Status = 3;

/// The engine kind of the CPU.
pub const ENGINE_CPU: c_int = 1;
/// A stream that runs primitives one after another.
pub const STREAM_IN_ORDER: c_uint = 1;
/// The CPU runtime of a library built for OpenMP.
pub const RUNTIME_OMP: c_uint = 2;

/// The format tag that lets a primitive choose a layout.
pub const TAG_ANY: c_int = 1;
/// The caller provides the workspace.
pub const SCRATCHPAD_USER: c_int = 1;
/// No arithmetic at lower precision than the tensors' type.
pub const FPMATH_STRICT: c_int = 0;
/// The sum has the type of the result.
pub const SAME_TYPE: c_int = 0;
/// x / (1 + e^(-alpha x)).
pub const SWISH: c_int = 0x2c;
/// x (alpha x + beta), the second factor clamped between 0 and 1.
pub const HARD_SWISH: c_int = 0x34;
/// Forward propagation that keeps nothing for the gradient (a convolution never does).
pub const FORWARD_INFERENCE: c_int = 96;
/// Direct convolution, without a transform.
pub const CONVOLUTION_DIRECT: c_int = 1;

/// Queries of primitive descriptors and memory descriptors.
#[allow(missing_docs)]
pub mod query {
    use std::ffi::c_int;

    pub const IMPLEMENTATION: c_int = 8;
    pub const WEIGHTS: c_int = 131;
    pub const DIFF_WEIGHTS: c_int = 132;
    pub const SCRATCHPAD: c_int = 136;
    pub const SUBMEMORY_OFFSET: c_int = 259;
}

/// The roles of a primitive's arguments.
#[allow(missing_docs)]
pub mod arg {
    use std::ffi::c_int;

    pub const SRC: c_int = 1;
    pub const DST: c_int = 17;
    pub const WEIGHTS: c_int = 33;
    pub const BIAS: c_int = 41;
    pub const SCRATCHPAD: c_int = 80;
    pub const DIFF_SRC: c_int = 129;
    pub const DIFF_DST: c_int = 145;
    pub const DIFF_WEIGHTS: c_int = 161;
}

/// A memory object and its role as an argument of a primitive.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Argument {
    /// One of [`arg`].
    pub index: c_int,
    /// The memory object.
    pub memory: Raw,
}

/// The library's version information.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Version {
    pub major: c_int,
    pub minor: c_int,
    pub patch: c_int,
    pub hash: *const c_char,
    pub cpu_runtime: c_uint,
    pub gpu_runtime: c_uint,
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The library's functions, named as in its headers without `dnnl_`.
        #[allow(missing_docs)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result),*
        }

        impl Functions {
            /// Looks up the functions.
            ///
            /// # Safety
            /// The library is oneDNN, and stays open while the functions are called.
            pub unsafe fn load(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the signatures are those of version 3's headers.
                Ok(unsafe {
                    Functions { $($name: *library.get(concat!("dnnl_", stringify!($name)))?),* }
                })
            }
        }
    };
}

functions! {
    fn version() -> *const Version;
    fn engine_create(*mut Raw, c_int, usize) -> Status;
    fn stream_create(*mut Raw, Raw, c_uint) -> Status;
    fn stream_destroy(Raw) -> Status;
    fn memory_desc_create_with_strides(*mut Raw, c_int, Dims, c_int, Dims) -> Status;
    fn memory_desc_create_with_tag(*mut Raw, c_int, Dims, c_int, c_int) -> Status;
    fn memory_desc_create_submemory(*mut Raw, Raw, Dims, Dims) -> Status;
    fn memory_desc_clone(*mut Raw, Raw) -> Status;
    fn memory_desc_equal(Raw, Raw) -> c_int;
    fn memory_desc_get_size(Raw) -> usize;
    fn memory_desc_query(Raw, c_int, *mut c_void) -> Status;
    fn memory_desc_destroy(Raw) -> Status;
    fn memory_create(*mut Raw, Raw, Raw, *mut c_void) -> Status;
    fn memory_set_data_handle(Raw, *mut c_void) -> Status;
    fn memory_destroy(Raw) -> Status;
    fn primitive_attr_create(*mut Raw) -> Status;
    fn primitive_attr_set_scratchpad_mode(Raw, c_int) -> Status;
    fn primitive_attr_set_fpmath_mode(Raw, c_int) -> Status;
    fn primitive_attr_set_post_ops(Raw, Raw) -> Status;
    fn primitive_attr_destroy(Raw) -> Status;
    fn post_ops_create(*mut Raw) -> Status;
    fn post_ops_append_sum(Raw, f32, i32, c_int) -> Status;
    fn post_ops_append_eltwise(Raw, c_int, f32, f32) -> Status;
    fn post_ops_destroy(Raw) -> Status;
    fn matmul_primitive_desc_create(*mut Raw, Raw, Raw, Raw, Raw, Raw, Raw) -> Status;
    fn convolution_forward_primitive_desc_create(
        *mut Raw, Raw, c_int, c_int, Raw, Raw, Raw, Raw, Dims, Dims, Dims, Dims, Raw
    ) -> Status;
    fn convolution_backward_data_primitive_desc_create(
        *mut Raw, Raw, c_int, Raw, Raw, Raw, Dims, Dims, Dims, Dims, Raw, Raw
    ) -> Status;
    fn convolution_backward_weights_primitive_desc_create(
        *mut Raw, Raw, c_int, Raw, Raw, Raw, Raw, Dims, Dims, Dims, Dims, Raw, Raw
    ) -> Status;
    fn reorder_primitive_desc_create(*mut Raw, Raw, Raw, Raw, Raw, Raw) -> Status;
    fn primitive_desc_query(Raw, c_int, c_int, *mut c_void) -> Status;
    fn primitive_desc_query_md(Raw, c_int, c_int) -> Raw;
    fn primitive_desc_destroy(Raw) -> Status;
    fn primitive_create(*mut Raw, Raw) -> Status;
    fn primitive_execute(Raw, Raw, c_int, *const Argument) -> Status;
    fn primitive_destroy(Raw) -> Status;
}

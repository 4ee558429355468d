//! Primitives: code that oneDNN generates for given descriptors, and its execution.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Mutex;

use smallvec::SmallVec;

use super::api::{self, Argument, Raw, Status, arg, query};
use super::descriptor::Descriptor;
use super::library::{Library, Owned, check};
use super::signals;
use crate::error::{Result, locked};

/// An implementation for given tensors, before code is generated.
pub struct Choice<'a> {
    pub(super) described: PrimitiveDescriptor<'a>,
    /// The arguments in the order in which runs pass them.
    pub(super) tensors: Vec<(c_int, Descriptor)>,
    /// The layout that it wants for its weights or its right factor.
    pub weights: Descriptor,
}

impl Choice<'_> {
    /// Generates the code.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn build(self) -> Result<Primitive> {
        self.described.build(self.tensors)
    }

    /// Whether it is a convolution that unfolds its images into matrices.
    pub fn unfolds(&self) -> bool {
        self.described.implementation().contains("gemm")
    }
}

/// A function of a primitive's result by which that is multiplied.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gate {
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// alpha x + beta, clamped between 0 and 1.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at 0.
        beta: f32,
    },
}

/// A primitive descriptor: the choice of an implementation, before code is generated.
pub(super) struct PrimitiveDescriptor<'a> {
    library: &'a Library,
    descriptor: Owned,
}

impl<'a> PrimitiveDescriptor<'a> {
    /// The descriptor that `create` writes. `None` if oneDNN has no implementation, or only the
    /// reference one, which is slower than our own loops.
    pub(super) fn new(
        library: &'a Library,
        call: &'static str,
        create: impl FnOnce(*mut Raw, Raw) -> Status,
    ) -> Result<Option<Self>> {
        PrimitiveDescriptor::with(library, &attributes(library)?, call, create)
    }

    /// The same for a primitive that adds to the previous contents of its result.
    pub(super) fn adding(
        library: &'a Library,
        call: &'static str,
        create: impl FnOnce(*mut Raw, Raw) -> Status,
    ) -> Result<Option<Self>> {
        let (attributes, append) = (attributes(library)?, library.functions.post_ops_append_sum);
        // SAFETY: the object is live.
        let sum = |raw| unsafe { append(raw, 1.0, 0, api::SAME_TYPE) };
        set_post_op(library, &attributes, "dnnl_post_ops_append_sum", sum)?;
        PrimitiveDescriptor::with(library, &attributes, call, create)
    }

    /// The same for a primitive whose result is multiplied by a function of it.
    pub(super) fn gated(
        library: &'a Library,
        gate: Gate,
        call: &'static str,
        create: impl FnOnce(*mut Raw, Raw) -> Status,
    ) -> Result<Option<Self>> {
        let (attributes, append) =
            (attributes(library)?, library.functions.post_ops_append_eltwise);
        let (kind, alpha, beta) = match gate {
            Gate::Sigmoid => (api::SWISH, 1.0, 0.0),
            Gate::HardSigmoid { alpha, beta } => (api::HARD_SWISH, alpha, beta),
        };
        // SAFETY: the object is live.
        let product = |raw| unsafe { append(raw, kind, alpha, beta) };
        set_post_op(library, &attributes, "dnnl_post_ops_append_eltwise", product)?;
        PrimitiveDescriptor::with(library, &attributes, call, create)
    }

    fn with(
        library: &'a Library,
        attributes: &Owned,
        call: &'static str,
        create: impl FnOnce(*mut Raw, Raw) -> Status,
    ) -> Result<Option<Self>> {
        library.expect_memory()?;
        let mut status = 0;
        let descriptor = library.alone(|| {
            Owned::new(call, library.functions.primitive_desc_destroy, |raw| {
                status = create(raw, attributes.raw());
                status
            })
        });
        if matches!(status, api::UNIMPLEMENTED | api::INVALID_ARGUMENTS) {
            log::debug!("oneDNN returned {status} for {call}");
            return Ok(None);
        }
        let described = PrimitiveDescriptor { library, descriptor: descriptor? };
        let is_reference = described.implementation().contains("ref");
        Ok((!is_reference).then_some(described))
    }

    /// The implementation's name.
    fn implementation(&self) -> String {
        let mut text: *const c_char = std::ptr::null();
        let place: *mut *const c_char = &mut text;
        let (f, raw) = (&self.library.functions, self.descriptor.raw());
        // SAFETY: this query writes the address of a string that lives as long as the descriptor.
        unsafe {
            (f.primitive_desc_query)(raw, query::IMPLEMENTATION, 0, place.cast());
            if text.is_null() {
                String::new()
            } else {
                CStr::from_ptr(text).to_string_lossy().into()
            }
        }
    }

    /// The layout that the implementation wants for a tensor.
    pub(super) fn layout(&self, what: c_int) -> Result<Descriptor> {
        Descriptor::copy_raw(self.library, self.layout_raw(what))
    }

    fn layout_raw(&self, what: c_int) -> Raw {
        // SAFETY: the descriptor is live; null means an empty descriptor.
        unsafe { (self.library.functions.primitive_desc_query_md)(self.descriptor.raw(), what, 0) }
    }

    /// Generates the code. `tensors` are the arguments in the order in which runs pass them.
    pub(super) fn build(self, tensors: Vec<(c_int, Descriptor)>) -> Result<Primitive> {
        let f = &self.library.functions;
        let primitive = self.library.alone(|| {
            Owned::new("dnnl_primitive_create", f.primitive_destroy, |raw| {
                // SAFETY: the descriptor is live.
                unsafe { (f.primitive_create)(raw, self.descriptor.raw()) }
            })
        })?;
        let scratchpad = self.layout(query::SCRATCHPAD)?;
        let scratch = scratchpad.bytes(self.library);
        let mut tensors = tensors;
        if scratch > 0 {
            tensors.push((arg::SCRATCHPAD, scratchpad));
        }
        let implementation = self.implementation();
        let fears_signals = signals::harm(&implementation);
        let idle = Mutex::default();
        Ok(Primitive { primitive, tensors, scratch, implementation, fears_signals, idle })
    }
}

/// Attributes: strict arithmetic, and workspace from the caller.
fn attributes(library: &Library) -> Result<Owned> {
    let f = &library.functions;
    // SAFETY: `raw` is valid for writing the object.
    let make = |raw| unsafe { (f.primitive_attr_create)(raw) };
    let attributes = Owned::new("dnnl_primitive_attr_create", f.primitive_attr_destroy, make)?;
    // SAFETY: the object is live.
    unsafe {
        let status = (f.primitive_attr_set_scratchpad_mode)(attributes.raw(), api::SCRATCHPAD_USER);
        check("dnnl_primitive_attr_set_scratchpad_mode", status)?;
        let status = (f.primitive_attr_set_fpmath_mode)(attributes.raw(), api::FPMATH_STRICT);
        check("dnnl_primitive_attr_set_fpmath_mode", status)?;
    }
    Ok(attributes)
}

/// Gives attributes what `append` appends to the operations that follow on a primitive's result.
fn set_post_op(
    library: &Library,
    attributes: &Owned,
    call: &'static str,
    append: impl FnOnce(Raw) -> Status,
) -> Result<()> {
    let f = &library.functions;
    // SAFETY: `raw` is valid for writing the object.
    let make = |raw| unsafe { (f.post_ops_create)(raw) };
    let post_ops = Owned::new("dnnl_post_ops_create", f.post_ops_destroy, make)?;
    check(call, append(post_ops.raw()))?;
    // SAFETY: both objects are live; the attributes copy the post-ops.
    let status = unsafe { (f.primitive_attr_set_post_ops)(attributes.raw(), post_ops.raw()) };
    check("dnnl_primitive_attr_set_post_ops", status)
}

/// Memory objects, one per tensor; only their addresses change from run to run.
type Memories = SmallVec<[Owned; 5]>;

/// Code for given descriptors, which runs on the calling thread. Runs may be concurrent.
pub struct Primitive {
    primitive: Owned,
    tensors: Vec<(c_int, Descriptor)>,
    scratch: usize,
    implementation: String,
    /// Whether signals have to be held back in a run.
    fears_signals: bool,
    /// Memory objects of finished runs, kept because creating them costs more than a small product.
    idle: Mutex<Vec<Memories>>,
}

impl Primitive {
    /// Bytes of workspace that a run needs.
    pub fn scratch(&self) -> usize {
        self.scratch
    }

    /// The implementation's name.
    pub fn implementation(&self) -> &str {
        &self.implementation
    }

    /// Runs the code on tensors at these addresses, in the order of its arguments.
    ///
    /// # Errors
    /// [`crate::Error::Library`] if oneDNN fails.
    ///
    /// # Safety
    /// Each address is valid for its descriptor, `scratch` for [`Primitive::scratch`] bytes aligned
    /// to 64, and meanwhile nobody else writes what is read or accesses what is written.
    pub unsafe fn run(&self, addresses: &[*mut u8], scratch: *mut u8) -> Result<()> {
        let library = super::library().expect("a primitive was made with it");
        let found = locked(&self.idle).pop();
        let memories = found.map_or_else(|| self.memories(library), Ok)?;
        let execute = || library.alone(|| self.execute(library, &memories, addresses, scratch));
        let status = if self.fears_signals { signals::held_back(execute) } else { execute() };
        locked(&self.idle).push(memories);
        status
    }

    fn memories(&self, library: &Library) -> Result<Memories> {
        let f = &library.functions;
        let memory = |(_, descriptor): &(c_int, Descriptor)| {
            Owned::new("dnnl_memory_create", f.memory_destroy, |raw| {
                // SAFETY: descriptor and engine are live; the address comes with each run.
                unsafe {
                    (f.memory_create)(raw, descriptor.raw(), library.engine(), std::ptr::null_mut())
                }
            })
        };
        self.tensors.iter().map(memory).collect()
    }

    fn execute(
        &self,
        library: &Library,
        memories: &Memories,
        addresses: &[*mut u8],
        scratch: *mut u8,
    ) -> Result<()> {
        let given = addresses.len() + (self.scratch > 0) as usize;
        assert_eq!(given, self.tensors.len(), "one address a tensor");
        let mut arguments: SmallVec<[Argument; 5]> = SmallVec::new();
        for (i, (memory, (index, _))) in memories.iter().zip(&self.tensors).enumerate() {
            let address = addresses.get(i).copied().unwrap_or(scratch);
            // SAFETY: this run has exclusive use of the memory object.
            let status =
                unsafe { (library.functions.memory_set_data_handle)(memory.raw(), address.cast()) };
            check("dnnl_memory_set_data_handle", status)?;
            arguments.push(Argument { index: *index, memory: memory.raw() });
        }
        let (count, primitive) = (arguments.len() as c_int, self.primitive.raw());
        library.with_stream(|stream| {
            let execute = library.functions.primitive_execute;
            // SAFETY: all objects are live; `run`'s caller vouches for the addresses.
            check("dnnl_primitive_execute", unsafe {
                execute(primitive, stream, count, arguments.as_ptr())
            })
        })
    }
}

/// A copy from one layout (or type) to another; its arguments are from, to. `None` if oneDNN has no
/// fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn reorder(library: &Library, [from, to]: [Descriptor; 2]) -> Result<Option<Primitive>> {
    let (call, engine) = ("dnnl_reorder_primitive_desc_create", library.engine());
    let described = PrimitiveDescriptor::new(library, call, |raw, attributes| {
        let create = library.functions.reorder_primitive_desc_create;
        // SAFETY: all objects are live.
        unsafe { create(raw, from.raw(), engine, to.raw(), engine, attributes) }
    })?;
    described.map(|described| described.build(vec![(arg::SRC, from), (arg::DST, to)])).transpose()
}

//! Convolutions by cuDNN, opened at run time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::calls::{Factor, Handle, Make, Owned, Release, Status, done, place};
use super::convolution::{Convolution, Layout, Pass};
use super::driver::Call;
use super::library::{self, Places};
use super::refusal;
use crate::device::Stream;
use crate::dtype::DType;
use crate::error::{Result, locked};

const PLACES: Places =
    Places { variable: "SINGA_RS_CUDNN", names: &["libcudnn.so.9", "libcudnn.so"] };
/// The most scratch memory that a convolution may take.
const SCRATCH: usize = 256 << 20;
/// The algorithms that are looked at.
const MOST: usize = 8;

// Of the library's enumerations, what is used here.
const CHANNELS_FIRST: c_int = 0;
const CHANNELS_LAST: c_int = 1;
const CROSS_CORRELATION: c_int = 1;
const DETERMINISTIC: c_int = 1;
const ON_MATRIX_UNITS: c_int = 1;
const WITHOUT_MATRIX_UNITS: c_int = 3;

type SetFilter = unsafe extern "C" fn(Handle, c_int, c_int, c_int, *const c_int) -> Status;
type SetTensor = unsafe extern "C" fn(Handle, c_int, c_int, *const c_int, *const c_int) -> Status;
type SetSlides = unsafe extern "C" fn(
    Handle,
    c_int,
    *const c_int,
    *const c_int,
    *const c_int,
    c_int,
    c_int,
) -> Status;
type SetNumber = unsafe extern "C" fn(Handle, c_int) -> Status;
type Choose = unsafe extern "C" fn(
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    c_int,
    *mut c_int,
    *mut Choice,
) -> Status;
type Space =
    unsafe extern "C" fn(Handle, Handle, Handle, Handle, Handle, c_int, *mut usize) -> Status;
type Compute = unsafe extern "C" fn(
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    c_int,
    *mut c_void,
    usize,
    *const c_void,
    Handle,
    *mut c_void,
) -> Status;
type Add = unsafe extern "C" fn(
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *mut c_void,
) -> Status;

/// An algorithm that the library proposes (`cudnnConvolutionFwdAlgoPerf_t` and its kin).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Choice {
    algorithm: c_int,
    status: Status,
    time: f32,
    scratch: usize,
    determinism: c_int,
    units: c_int,
    reserved: [c_int; 3],
}

/// What the library offers for one pass: the operands, the convolution and the result are given in
/// the same order in all of them.
#[derive(Clone, Copy)]
struct Functions {
    choose: Choose,
    space: Space,
    compute: Compute,
}

impl Functions {
    fn of(open: library::Open, pass: &str) -> Result<Functions> {
        // SAFETY: the types are those of cuDNN's functions.
        unsafe {
            let get = format!("cudnnGetConvolution{pass}");
            Ok(Functions {
                choose: library::function(open, &format!("{get}Algorithm_v7"))?,
                space: library::function(open, &format!("{get}WorkspaceSize"))?,
                compute: library::function(open, &format!("cudnnConvolution{pass}"))?,
            })
        }
    }
}

/// The library, with a handle of it that is never released.
pub(super) struct Convolutions {
    /// Of one stream at a time.
    handle: Mutex<Handle>,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    tensor: (Make, SetTensor, Release),
    filter: (Make, SetFilter, Release),
    slides: (Make, SetSlides, Release),
    set_units: SetNumber,
    set_groups: SetNumber,
    passes: [Functions; 3],
    add: Add,
}

// SAFETY: the library may be called from any thread; its handle is used by one at a time.
unsafe impl Send for Convolutions {}
// SAFETY: as above.
unsafe impl Sync for Convolutions {}

impl Convolutions {
    /// Opens the library in the context of the calling thread; None where there is none.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the environment names a file that is none.
    pub(super) fn find() -> Result<Option<&'static Convolutions>> {
        let found = PLACES.find(Convolutions::open)?;
        Ok(found.map(|found| &*Box::leak(Box::new(found))))
    }

    fn open(path: &Path) -> Result<Convolutions> {
        let open = library::open(path)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the types are those of cuDNN's functions.
        unsafe {
            let create: Make = library::function(open, "cudnnCreate")?;
            done(create(&mut handle))?;
            let make =
                |of: &str| library::function::<Make>(open, &format!("cudnnCreate{of}Descriptor"));
            let release = |of: &str| {
                library::function::<Release>(open, &format!("cudnnDestroy{of}Descriptor"))
            };
            let set_tensor = library::function(open, "cudnnSetTensorNdDescriptor")?;
            let set_filter = library::function(open, "cudnnSetFilterNdDescriptor")?;
            let set_slides = library::function(open, "cudnnSetConvolutionNdDescriptor")?;
            let pass = |name| Functions::of(open, name);
            Ok(Convolutions {
                handle: Mutex::new(handle),
                set_stream: library::function(open, "cudnnSetStream")?,
                tensor: (make("Tensor")?, set_tensor, release("Tensor")?),
                filter: (make("Filter")?, set_filter, release("Filter")?),
                slides: (make("Convolution")?, set_slides, release("Convolution")?),
                set_units: library::function(open, "cudnnSetConvolutionMathType")?,
                set_groups: library::function(open, "cudnnSetConvolutionGroupCount")?,
                passes: [pass("Forward")?, pass("BackwardData")?, pass("BackwardFilter")?],
                add: library::function(open, "cudnnAddTensor")?,
            })
        }
    }

    /// Prepares a convolution.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the library has no algorithm for it that gives the same bits
    /// in each run.
    pub(super) fn prepare(&'static self, convolution: &Convolution) -> Result<Arc<dyn Call>> {
        let Convolution { pass, dtype, layout, extents: [x, w, y], has_bias, .. } = convolution;
        let tensor = |extents: &[usize]| self.tensor(*dtype, *layout, extents);
        let mut channels = vec![1; y.len()];
        channels[1] = y[1];
        let mut prepared = Prepared {
            library: self,
            pass: *pass,
            dtype: *dtype,
            tensors: [tensor(x)?, self.filter(*dtype, *layout, w)?, tensor(y)?],
            slides: self.slides(convolution)?,
            bias: has_bias.then(|| tensor(&channels)).transpose()?,
            choice: Choice::default(),
        };
        prepared.choice = prepared.choice()?;
        Ok(Arc::new(prepared))
    }

    fn functions(&self, pass: Pass) -> Functions {
        self.passes[pass as usize]
    }

    fn tensor(&self, dtype: DType, layout: Layout, extents: &[usize]) -> Result<Owned> {
        let (make, set, release) = self.tensor;
        let (extents, strides) = (numbers(extents)?, numbers(&layout.strides(extents))?);
        let rank = extents.len() as c_int;
        // SAFETY: the library's calls, with as many numbers as axes.
        unsafe {
            let made = Owned::new(release, |to| make(to))?;
            done(set(made.handle, kind(dtype), rank, extents.as_ptr(), strides.as_ptr()))?;
            Ok(made)
        }
    }

    fn filter(&self, dtype: DType, layout: Layout, extents: &[usize]) -> Result<Owned> {
        let (make, set, release) = self.filter;
        let extents = numbers(extents)?;
        let rank = extents.len() as c_int;
        let format = match layout {
            Layout::ChannelsFirst => CHANNELS_FIRST,
            Layout::ChannelsLast => CHANNELS_LAST,
        };
        // SAFETY: as above.
        unsafe {
            let made = Owned::new(release, |to| make(to))?;
            done(set(made.handle, kind(dtype), format, rank, extents.as_ptr()))?;
            Ok(made)
        }
    }

    fn slides(&self, convolution: &Convolution) -> Result<Owned> {
        let Convolution { dtype, slides: [stride, padding, dilation], groups, .. } = convolution;
        let (make, set, release) = self.slides;
        let [padding, stride, dilation] = [numbers(padding)?, numbers(stride)?, numbers(dilation)?];
        let [of_padding, of_stride, of_dilation] =
            [&padding, &stride, &dilation].map(|all| all.as_ptr());
        let (rank, sums) = (stride.len() as c_int, if *dtype == DType::Float64 { 1 } else { 0 });
        let groups = c_int::try_from(*groups).map_err(|_| too_large())?;
        // SAFETY: as above.
        unsafe {
            let made = Owned::new(release, |to| make(to))?;
            let to = made.handle;
            let kind = CROSS_CORRELATION;
            done(set(to, rank, of_padding, of_stride, of_dilation, kind, sums))?;
            done((self.set_groups)(to, groups))?;
            done((self.set_units)(to, units(*dtype)))?;
            Ok(made)
        }
    }
}

/// A convolution that is described to the library.
struct Prepared {
    library: &'static Convolutions,
    pass: Pass,
    dtype: DType,
    /// Of `x`, `w` and `y`.
    tensors: [Owned; 3],
    slides: Owned,
    bias: Option<Owned>,
    choice: Choice,
}

impl Prepared {
    /// The first of the library's choices that gives the same bits in each run, without TF32.
    fn choice(&self) -> Result<Choice> {
        let (mut choices, mut count) = ([Choice::default(); MOST], 0);
        let [a, b, to] = self.pass.order().map(|t| self.tensors[t].handle);
        let Functions { choose, space, .. } = self.library.functions(self.pass);
        let handle = *locked(&self.library.handle);
        let (slides, first) = (self.slides.handle, choices.as_mut_ptr());
        // SAFETY: the library's call; there is room for as many choices.
        done(unsafe { choose(handle, a, b, slides, to, MOST as c_int, &mut count, first) })?;
        for mut choice in choices.into_iter().take(count as usize) {
            let is_exact =
                choice.units == units(self.dtype) || choice.units == WITHOUT_MATRIX_UNITS;
            if choice.status != 0 || choice.determinism != DETERMINISTIC || !is_exact {
                continue;
            }
            // SAFETY: as above.
            let fits = unsafe {
                done((self.library.set_units)(slides, choice.units))?;
                space(handle, a, b, slides, to, choice.algorithm, &mut choice.scratch) == 0
            };
            if fits && choice.scratch <= SCRATCH {
                return Ok(choice);
            }
        }
        Err(refusal("cuDNN has no algorithm for this convolution"))
    }
}

impl Call for Prepared {
    fn scratch(&self) -> usize {
        self.choice.scratch
    }

    fn alignment(&self) -> u64 {
        16
    }

    unsafe fn put(&self, stream: Stream, tensors: &[u64], scratch: u64) -> Result<()> {
        let library = self.library;
        let handle = locked(&library.handle);
        let [of_a, of_b, of_to] = self.pass.order().map(|t| self.tensors[t].handle);
        let [a, b, to] = self.pass.order().map(|t| place(tensors[t]));
        let [one, none] = [1.0, 0.0].map(|factor| Factor::new(factor, self.dtype));
        let [one, none] = [&one, &none].map(Factor::place);
        let (slides, Choice { algorithm, scratch: bytes, .. }) = (self.slides.handle, self.choice);
        let (compute, space) = (library.functions(self.pass).compute, place(scratch));
        // SAFETY: the addresses are the caller's; factors are read at once.
        unsafe {
            done((library.set_stream)(*handle, place(stream.0 as u64)))?;
            done(compute(
                *handle, one, of_a, a, of_b, b, slides, algorithm, space, bytes, none, of_to, to,
            ))?;
            if let Some(bias) = &self.bias {
                done((library.add)(*handle, one, bias.handle, place(tensors[3]), one, of_to, to))?;
            }
        }
        Ok(())
    }
}

/// Floats are multiplied as they are, halves on matrix units.
fn units(dtype: DType) -> c_int {
    match dtype {
        DType::Float16 | DType::BFloat16 => ON_MATRIX_UNITS,
        _ => WITHOUT_MATRIX_UNITS,
    }
}

fn kind(dtype: DType) -> c_int {
    match dtype {
        DType::Float64 => 1,
        DType::Float16 => 2,
        DType::BFloat16 => 9,
        _ => 0,
    }
}

fn numbers(of: &[usize]) -> Result<Vec<c_int>> {
    of.iter().map(|&n| c_int::try_from(n).map_err(|_| too_large())).collect()
}

fn too_large() -> crate::Error {
    refusal("cuDNN takes no tensor as large")
}

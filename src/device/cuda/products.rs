//! Products of matrices by cuBLASLt, opened at run time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use super::calls::{Factor, Handle, Make, Owned, Release, Status, done, place};
use super::driver::Call;
use super::library::{self, Places};
use super::product::{Operand, Product};
use super::refusal;
use crate::device::Stream;
use crate::dtype::DType;
use crate::error::Result;

const PLACES: Places = Places {
    variable: "SINGA_RS_CUBLASLT",
    names: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
};
/// The most scratch memory that a product may take: what NVIDIA recommends for its newest GPUs.
const SCRATCH: usize = 32 << 20;
/// What the address of scratch memory is a multiple of.
const SCRATCH_ALIGNMENT: u64 = 256;
/// Tensors whose addresses are multiples of this are read in the widest accesses.
const ALIGNED: u32 = 16;

type Set = unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> Status;
type Choose = unsafe extern "C" fn(
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    c_int,
    *mut Choice,
    *mut c_int,
) -> Status;
type Multiply = unsafe extern "C" fn(
    Handle,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *mut c_void,
    Handle,
    *const [u64; 8],
    *mut c_void,
    usize,
    *mut c_void,
) -> Status;

/// An algorithm that the library proposes (`cublasLtMatmulHeuristicResult_t`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Choice {
    algorithm: [u64; 8],
    scratch: usize,
    status: Status,
    waves: f32,
    reserved: [c_int; 4],
}

// Of the library's enumerations, what is used here.
const TURNED: [c_int; 2] = [3, 4];
const BATCH: c_int = 5;
const STEP: c_int = 6;
const MOST_SCRATCH: c_int = 1;
const LEAST_ALIGNMENTS: [c_int; 4] = [5, 6, 7, 8];

/// Something that the library describes: made, given attributes, released.
#[derive(Clone, Copy)]
struct Kind<F> {
    make: F,
    set: Set,
    release: Release,
}

impl<F: Copy> Kind<F> {
    /// # Safety
    /// `F` is the type of the function that makes it.
    unsafe fn of(open: library::Open, name: &str) -> Result<Kind<F>> {
        // SAFETY: by the caller's promise; the others have one type for all that is described.
        unsafe {
            Ok(Kind {
                make: library::function(open, &format!("cublasLt{name}Create"))?,
                set: library::function(open, &format!("cublasLt{name}SetAttribute"))?,
                release: library::function(open, &format!("cublasLt{name}Destroy"))?,
            })
        }
    }

    /// # Safety
    /// The attribute is one of what is described, and of this type.
    unsafe fn set<T>(&self, described: &Owned, attribute: c_int, value: T) -> Result<()> {
        let value = (&raw const value).cast();
        // SAFETY: by the caller's promise; the library copies the value.
        done(unsafe { (self.set)(described.handle, attribute, value, size_of::<T>()) })
    }
}

/// The library, with a handle of it that is never released.
#[derive(Clone, Copy)]
pub(super) struct Products {
    handle: Handle,
    products: Kind<unsafe extern "C" fn(*mut Handle, c_int, c_int) -> Status>,
    layouts: Kind<unsafe extern "C" fn(*mut Handle, c_int, u64, u64, i64) -> Status>,
    preferences: Kind<Make>,
    choose: Choose,
    multiply: Multiply,
}

// SAFETY: the library may be called from any thread.
unsafe impl Send for Products {}
// SAFETY: as above.
unsafe impl Sync for Products {}

impl Products {
    /// Opens the library in the context of the calling thread; None where there is none.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the environment names a file that is none.
    pub(super) fn find() -> Result<Option<Products>> {
        PLACES.find(Products::open)
    }

    fn open(path: &Path) -> Result<Products> {
        let open = library::open(path)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the types are those of cuBLASLt's functions.
        unsafe {
            let create: Make = library::function(open, "cublasLtCreate")?;
            done(create(&mut handle))?;
            Ok(Products {
                handle,
                products: Kind::of(open, "MatmulDesc")?,
                layouts: Kind::of(open, "MatrixLayout")?,
                preferences: Kind::of(open, "MatmulPreference")?,
                choose: library::function(open, "cublasLtMatmulAlgoGetHeuristic")?,
                multiply: library::function(open, "cublasLtMatmul")?,
            })
        }
    }

    /// Prepares a product.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the library has no algorithm for it.
    pub(super) fn prepare(&self, product: &Product) -> Result<Arc<dyn Call>> {
        let layout = |i| self.layout(product, i);
        let mut prepared = Prepared {
            library: *self,
            product: self.product(product)?,
            layouts: [layout(0)?, layout(1)?, layout(2)?],
            tensors: product.operands.map(|operand| operand.tensor),
            dtype: product.dtype,
            adds: product.adds,
            choices: [Choice::default(); 2],
        };
        let least = [ALIGNED, product.dtype.size() as u32];
        prepared.choices = [prepared.choice(least[0])?, prepared.choice(least[1])?];
        Ok(Arc::new(prepared))
    }

    fn product(&self, product: &Product) -> Result<Owned> {
        // Products of doubles are summed in doubles, all others in floats, without TF32.
        let (sums, numbers) = if product.dtype == DType::Float64 { (70, 1) } else { (68, 0) };
        // SAFETY: a call of the library, and attributes of the type that it documents.
        unsafe {
            let Kind { make, release, .. } = self.products;
            let made = Owned::new(release, |to| make(to, sums, numbers))?;
            for (attribute, operand) in TURNED.into_iter().zip(&product.operands) {
                self.products.set(&made, attribute, c_int::from(operand.is_turned))?;
            }
            Ok(made)
        }
    }

    fn layout(&self, product: &Product, i: usize) -> Result<Owned> {
        let Operand { is_turned, leading, step, .. } = product.operands[i];
        let (rows, columns) = product.extents(i);
        let (high, wide) = if is_turned { (columns, rows) } else { (rows, columns) };
        let (high, wide, leading) = (high as u64, wide as u64, leading as i64);
        let dtype = match if i == 2 { product.result } else { product.dtype } {
            DType::Float64 => 1,
            DType::Float16 => 2,
            DType::BFloat16 => 14,
            _ => 0,
        };
        // SAFETY: as above.
        unsafe {
            let Kind { make, release, .. } = self.layouts;
            let made = Owned::new(release, |to| make(to, dtype, high, wide, leading))?;
            if product.batch > 1 {
                self.layouts.set(&made, BATCH, product.batch as i32)?;
                self.layouts.set(&made, STEP, step as i64)?;
            }
            Ok(made)
        }
    }
}

/// A product that is described to the library.
struct Prepared {
    library: Products,
    product: Owned,
    layouts: [Owned; 3],
    tensors: [usize; 3],
    dtype: DType,
    adds: bool,
    /// For tensors whose addresses are well aligned, and for any.
    choices: [Choice; 2],
}

impl Prepared {
    /// The library's first choice for addresses that are multiples of `alignment`.
    fn choice(&self, alignment: u32) -> Result<Choice> {
        let (mut choice, mut count) = (Choice::default(), 0);
        let [a, b, y] = self.layouts.each_ref().map(|layout| layout.handle);
        let Products { handle, preferences, choose, .. } = self.library;
        // SAFETY: as above; there is room for one choice.
        unsafe {
            let preference = Owned::new(preferences.release, |to| (preferences.make)(to))?;
            let set = |of| preferences.set(&preference, of, alignment);
            preferences.set(&preference, MOST_SCRATCH, SCRATCH)?;
            LEAST_ALIGNMENTS.into_iter().try_for_each(set)?;
            let (product, preference) = (self.product.handle, preference.handle);
            let status =
                choose(handle, product, a, b, y, y, preference, 1, &mut choice, &mut count);
            done(status)?;
        }
        crate::ensure!(count > 0, refusal("cuBLASLt has no algorithm for this product"));
        done(choice.status)?;
        Ok(choice)
    }
}

impl Call for Prepared {
    fn scratch(&self) -> usize {
        let most = self.choices.iter().map(|choice| choice.scratch).max().unwrap_or(0);
        if most == 0 { 0 } else { most + SCRATCH_ALIGNMENT as usize }
    }

    unsafe fn put(&self, stream: Stream, tensors: &[u64], scratch: u64) -> Result<()> {
        let [a, b, y] = self.tensors.map(|tensor| tensors[tensor]);
        let is_aligned = (a | b | y).is_multiple_of(u64::from(ALIGNED));
        let Choice { algorithm, scratch: bytes, .. } = &self.choices[usize::from(!is_aligned)];
        let [of_a, of_b, of_y] = self.layouts.each_ref().map(|layout| layout.handle);
        let [one, kept] =
            [1.0, f64::from(u8::from(self.adds))].map(|factor| Factor::new(factor, self.dtype));
        let Products { handle, multiply, .. } = self.library;
        let scratch = if *bytes == 0 { 0 } else { scratch.next_multiple_of(SCRATCH_ALIGNMENT) };
        // SAFETY: the addresses are the caller's, and those of the numbers are read at once.
        done(unsafe {
            multiply(
                handle,
                self.product.handle,
                one.place(),
                place(a),
                of_a,
                place(b),
                of_b,
                kept.place(),
                place(y),
                of_y,
                place(y),
                of_y,
                algorithm,
                place(scratch),
                *bytes,
                place(stream.0 as u64),
            )
        })
    }
}

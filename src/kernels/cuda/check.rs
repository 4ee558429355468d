//! What must hold of an input's elements before an operation runs.

use super::source::Source;
use super::types::computed;
use super::walk::Walk;
use crate::dtype::{DType, Element};
use crate::error::Error;
use crate::ops::Meta;

/// The number of the first element, row-major, for which the condition does not hold: the most that
/// there is where all are well.
pub const NONE: u64 = u64::MAX;

/// A condition on each element of an input.
pub struct Check {
    /// The input.
    pub input: usize,
    /// Finds the first element that the condition refuses.
    pub source: Source,
    meta: Meta,
    refusal: Box<dyn Fn(Found) -> Error + Send + Sync>,
}

/// An element that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its value.
    pub real: f64,
    /// Its value, if it is an integer.
    pub integer: i128,
}

/// What indices may be.
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    /// The number of entries; any whole number where it is not known.
    pub size: Option<usize>,
    /// Whether negative ones count from the end.
    pub wraps: bool,
    /// A number that stands for no entry, and is valid.
    pub ignored: Option<i64>,
    /// What the error for a fraction asks for.
    pub want: &'static str,
}

impl Entries {
    /// Those of an axis.
    pub fn of(size: Option<usize>, wraps: bool) -> Entries {
        Entries { size, wraps, ignored: None, want: "an integer as index" }
    }
}

impl Check {
    /// Refuses what is no index of these entries.
    pub fn entries(name: &'static str, input: usize, meta: &Meta, entries: Entries) -> Check {
        let Entries { size, wraps, ignored, want } = entries;
        let is_float = meta.dtype.is_float();
        let bad = |source: &mut Source| {
            let size = source.integer(size.map_or(-1, |size| size as i64));
            let outside = format!("!is_entry(x, {size}, {wraps})");
            let Some(ignored) = ignored else { return outside };
            let ignored = source.integer(ignored);
            format!("{outside} && !(is_entry(x, -1, false) && (int64)x == {ignored})")
        };
        let refusal = move |found: Found| {
            let is_whole = found.real.fract() == 0.0 && found.real.abs() < i64::MAX as f64;
            if is_float && !is_whole {
                return Error::value(name, found.real, want);
            }
            let index = if is_float { found.real as i64 } else { found.integer as i64 };
            Error::Index { op: name.into(), index, size: size.unwrap_or(0) }
        };
        Check::new(input, meta, bad, refusal)
    }

    /// Refuses elements `x` for which the condition in CUDA C is true.
    pub fn new(
        input: usize,
        meta: &Meta,
        bad: impl FnOnce(&mut Source) -> String,
        refusal: impl Fn(Found) -> Error + Send + Sync + 'static,
    ) -> Check {
        let mut source = Source::new("check", &[meta.dtype], &[DType::UInt64]);
        let bad = bad(&mut source);
        let axes: Vec<usize> = (0..meta.shape.rank()).collect();
        let places = source.each(&Walk::along(&axes, &[meta]));
        let (wide, place) = (computed(meta.dtype), &places[0]);
        source.line(format!("    const {wide} x = load(g.in0[{place}]);"));
        source.line(format!("    if ({bad}) atomicMin(g.out0, (uint64)i);"));
        source.end();
        Check { input, source, meta: meta.clone(), refusal: Box::new(refusal) }
    }

    /// The place of element `i`, row-major, in bytes from the first one.
    pub fn place(&self, i: u64) -> isize {
        let (mut rest, mut place) = (i as usize, 0);
        for (&extent, &stride) in self.meta.shape.iter().zip(&self.meta.strides).rev() {
            place += (rest % extent) as isize * stride;
            rest /= extent;
        }
        place * self.meta.dtype.size() as isize
    }

    /// The size of an element.
    pub fn element(&self) -> usize {
        self.meta.dtype.size()
    }

    /// The error for an element with these bytes.
    #[allow(unsafe_code)]
    pub fn refused(&self, bytes: &[u8]) -> Error {
        let found = crate::dispatch!(self.meta.dtype, T => {
            // SAFETY: as many bytes as an element has, which any bits are.
            let element = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
            Found { real: element.to_f64(), integer: element.to_i128() }
        });
        (self.refusal)(found)
    }
}

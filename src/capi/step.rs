//! A step with its descriptions in C's types.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::error::{Error, Result};
use crate::step::{Step, Tensor};

const RESULT: c_int = 1;
const STATE: c_int = 2;

/// The `singa_step` of the header.
pub struct CStep {
    pub(super) step: Step,
    /// Arguments, results and states.
    tensors: [Vec<Described>; 3],
}

/// The `singa_tensor` of the header.
#[repr(C)]
pub struct CTensor {
    pub(super) name: *const c_char,
    pub(super) dtype: *const c_char,
    pub(super) rank: usize,
    pub(super) shape: *const usize,
    pub(super) bytes: usize,
}

/// What a description points to.
pub(super) struct Described {
    name: CString,
    dtype: CString,
    shape: Vec<usize>,
    bytes: usize,
}

impl Described {
    fn new(tensor: &Tensor) -> Described {
        // A name with a null byte ends there.
        let until_null = |text: &str| {
            let bytes = [text.as_bytes(), b"\0"].concat();
            CStr::from_bytes_until_nul(&bytes).map(CString::from).unwrap_or_default()
        };
        Described {
            name: until_null(&tensor.name),
            dtype: until_null(tensor.dtype.name()),
            shape: tensor.shape.to_vec(),
            bytes: tensor.bytes(),
        }
    }

    /// The description, valid as long as this.
    pub fn describe(&self) -> CTensor {
        CTensor {
            name: self.name.as_ptr(),
            dtype: self.dtype.as_ptr(),
            rank: self.shape.len(),
            shape: self.shape.as_ptr(),
            bytes: self.bytes,
        }
    }
}

impl CStep {
    pub(super) fn new(step: Step) -> CStep {
        let described = |tensors: &[Tensor]| tensors.iter().map(Described::new).collect();
        let states = step.states().map(Described::new).collect();
        let tensors = [described(step.arguments()), described(step.results()), states];
        CStep { step, tensors }
    }

    /// The tensors of a kind.
    pub(super) fn tensors(&self, op: &'static str, kind: c_int) -> Result<&[Described]> {
        let found = usize::try_from(kind).ok().and_then(|kind| self.tensors.get(kind));
        let want = "SINGA_ARGUMENT, SINGA_RESULT or SINGA_STATE";
        found.map(Vec::as_slice).ok_or_else(|| Error::value(op, format!("kind {kind}"), want))
    }

    /// One of them.
    pub(super) fn tensor(&self, op: &'static str, kind: c_int, index: usize) -> Result<&Described> {
        let all = self.tensors(op, kind)?;
        let want = || format!("an index below {}", all.len());
        all.get(index).ok_or_else(|| Error::value(op, index, want()))
    }

    /// The index of the one with this name.
    pub(super) fn find(&self, op: &'static str, kind: c_int, name: &str) -> Result<usize> {
        let all = self.tensors(op, kind)?;
        let is_it = |tensor: &Described| tensor.name.to_bytes() == name.as_bytes();
        let names = || all.iter().map(|tensor| tensor.name.to_string_lossy()).collect::<Vec<_>>();
        let refusal = || Error::value(op, name, format!("one of {}", names().join(", ")));
        all.iter().position(is_it).ok_or_else(refusal)
    }

    /// Copies a result or a state.
    pub(super) fn read(
        &self,
        op: &'static str,
        kind: c_int,
        index: usize,
        into: &mut [u8],
    ) -> Result<()> {
        match kind {
            RESULT => self.step.result(index, into),
            STATE => self.step.state(index, into),
            _ => Err(Error::value(op, format!("kind {kind}"), "SINGA_RESULT or SINGA_STATE")),
        }
    }
}

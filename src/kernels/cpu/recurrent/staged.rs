//! A kernel for contiguous tensors of one type, made one for tensors of any strides and types: they
//! are copied where they have others.
#![allow(unsafe_code)]

use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::cpu::copy::cast;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// A copy in scratch memory, this many bytes from its start.
struct Copy {
    at: usize,
    kernel: Arc<dyn Kernel>,
}

struct Staged {
    kernel: Arc<dyn Kernel>,
    inputs: Vec<Option<Copy>>,
    outputs: Vec<Option<Copy>>,
    /// Bytes of the copies.
    bytes: usize,
}

/// The kernel that `make` prepares for contiguous tensors of the types that `wide` returns, for
/// tensors of these metas, the first `inputs` of them being inputs.
///
/// # Errors
/// Those of `make`.
pub fn prepare(
    io: &[&Meta],
    inputs: usize,
    wide: impl Fn(&Meta) -> Meta,
    width: Width,
    make: impl FnOnce(&[&Meta]) -> Result<Arc<dyn Kernel>>,
) -> Result<Arc<dyn Kernel>> {
    let metas: Vec<Meta> = io.iter().map(|meta| wide(meta)).collect();
    let kernel = make(&metas.iter().collect::<Vec<_>>())?;
    let (mut bytes, mut copies) = (0, Vec::new());
    for (n, (own, wide)) in io.iter().zip(&metas).enumerate() {
        let is_same = own.dtype == wide.dtype && own.is_contiguous();
        copies.push((!is_same).then(|| {
            let ends = if n < inputs { [*own, wide] } else { [wide, *own] };
            let copy = Copy { at: bytes, kernel: cast(ends[0], ends[1], width) };
            bytes += wide.bytes().next_multiple_of(ALIGNMENT);
            copy
        }));
    }
    if copies.iter().all(Option::is_none) {
        return Ok(kernel);
    }
    let outputs = copies.split_off(inputs);
    Ok(Arc::new(Staged { kernel, inputs: copies, outputs, bytes }))
}

impl Kernel for Staged {
    fn scratch(&self) -> usize {
        let copies = self.inputs.iter().chain(&self.outputs).flatten();
        let most = copies.map(|copy| copy.kernel.scratch()).max().unwrap_or(0);
        self.bytes + self.kernel.scratch().max(most)
    }

    fn threads(&self) -> usize {
        let copies = self.inputs.iter().chain(&self.outputs).flatten();
        copies.map(|copy| copy.kernel.threads()).fold(self.kernel.threads(), usize::max)
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.kernel.bytes()
    }

    fn run(&self, io: &Io) -> Result<()> {
        let scratch = io.scratch::<u8>().wrapping_add(self.bytes);
        let place = |copy: &Copy| io.scratch::<u8>().wrapping_add(copy.at);
        let run = |copy: &Copy, from: *const u8, to: *mut u8| {
            let (from, to) = ([from], [to]);
            // SAFETY: `io` is what this was prepared for, with as much scratch memory as requested.
            copy.kernel.run(&unsafe { Io::new(&from, &to, scratch) })
        };
        let mut inputs: SmallVec<[*const u8; 12]> = SmallVec::new();
        for (i, copy) in self.inputs.iter().enumerate() {
            if let Some(copy) = copy {
                run(copy, io.input(i), place(copy))?;
            }
            inputs.push(copy.as_ref().map_or(io.input(i), |copy| place(copy).cast_const()));
        }
        let own = |(o, copy): (usize, &Option<Copy>)| copy.as_ref().map_or(io.output(o), place);
        let outputs: SmallVec<[*mut u8; 8]> = self.outputs.iter().enumerate().map(own).collect();
        // SAFETY: as above.
        self.kernel.run(&unsafe { Io::new(&inputs, &outputs, scratch) })?;
        let back = self.outputs.iter().enumerate();
        back.filter_map(|(o, copy)| Some((o, copy.as_ref()?)))
            .try_for_each(|(o, copy)| run(copy, place(copy), io.output(o)))
    }
}

//! Calling user code with plain buffers.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Result;
use crate::kernels::cpu::strided::walk::{Walk, dims};
use crate::kernels::{Io, Kernel, kernel};
use crate::ops::Meta;
use crate::ops::host::{Host, HostFn, HostInput, HostOutput};

/// Prepares a call of the user's code on row-major copies of the inputs, where they are not
/// row-major.
pub fn prepare(op: &Host, io: &[&Meta]) -> Arc<dyn Kernel> {
    let metas: Vec<Meta> = io.iter().map(|&m| m.clone()).collect();
    let function = op.function().clone();
    let scratch = metas.iter().map(room).sum();
    kernel(scratch, move |io| call(&*function, &metas, io))
}

/// Bytes of scratch memory for the row-major copy of a tensor, if it needs one.
fn room(meta: &Meta) -> usize {
    if meta.is_contiguous() { 0 } else { meta.bytes().next_multiple_of(64) }
}

fn call(function: &dyn HostFn, metas: &[Meta], io: &Io) -> Result<()> {
    let (from, to) = metas.split_at(io.input_count());
    let mut place = 0;
    let mut inputs: SmallVec<[HostInput; 4]> = SmallVec::new();
    for (i, meta) in from.iter().enumerate() {
        let bytes = input(io, i, meta, place..place + room(meta));
        inputs.push(HostInput { dtype: meta.dtype, shape: &meta.shape, bytes });
        place += room(meta);
    }
    let output = |(o, meta): (usize, _)| {
        let meta: &Meta = meta;
        // SAFETY: the outputs are row-major, as they were inferred.
        let bytes = unsafe { io.write::<u8>(o, meta.bytes()) };
        bytes.fill(0);
        HostOutput { dtype: meta.dtype, shape: &meta.shape, bytes }
    };
    let mut outputs: SmallVec<[HostOutput; 2]> = to.iter().enumerate().map(output).collect();
    function.call(&inputs, &mut outputs)
}

/// The row-major elements of input `i`: in place, or a copy in this range of the scratch memory.
fn input<'a>(io: &Io<'a>, i: usize, meta: &Meta, room: Range<usize>) -> &'a [u8] {
    if meta.is_contiguous() {
        // SAFETY: the elements are contiguous.
        return unsafe { io.read(i, meta.bytes()) };
    }
    // SAFETY: this range of the scratch memory was requested, and is used for this input alone.
    unsafe {
        let copy = io.scratch::<u8>().add(room.start);
        let walk = Walk::new(dims([meta]));
        by_size!(meta.dtype.size(), T => walk.copy(io.input::<T>(i), copy.cast()));
        std::slice::from_raw_parts(copy, meta.bytes())
    }
}

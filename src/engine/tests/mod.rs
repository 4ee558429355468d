//! Tests of the engine on a device of its own, whose memory is counted and limited.
#![allow(unsafe_code)]

mod accounts;
mod apart;
mod compare;
mod constants;
mod exchange;
mod executable;
mod failures;
mod finite;
mod fits;
mod generators;
mod gpu;
mod host;
mod initial;
mod kernels;
mod parallel;
mod poison;
mod programs;
mod recording;
mod replay;
mod sealed;
mod state;
mod streams;
mod timing;
mod undo;

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::json;

use super::*;
use crate::device::{ALIGNMENT, Account, Backend};
use crate::dtype::{DType, Element};
use crate::graph::Origin;
use crate::view::Meta;

/// A backend with a limited number of bytes; fresh memory is filled with garbage.
struct Limited {
    left: AtomicUsize,
}

thread_local! {
    /// How many of this thread's next writes to such memory are refused.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).unwrap()
}

impl Backend for Limited {
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(bytes)).ok()?;
        // SAFETY: the size is not zero.
        let pointer = NonNull::new(unsafe { std::alloc::alloc(layout(bytes)) })?;
        // SAFETY: the memory was just allocated.
        unsafe { pointer.write_bytes(0xa5, bytes) };
        Some(pointer)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, bytes: usize) {
        self.left.fetch_add(bytes, SeqCst);
        // SAFETY: allocated by `allocate` with this size.
        unsafe { std::alloc::dealloc(pointer.as_ptr(), layout(bytes)) };
    }

    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()> {
        if let Some(left) = REFUSED.get().checked_sub(1) {
            REFUSED.set(left);
            return Err(Error::device("upload", "it is refused"));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn available(&self, _wanted: usize) -> usize {
        self.left.load(SeqCst)
    }

    fn fillable(&self, wanted: usize) -> usize {
        self.available(wanted)
    }

    fn addresses(&self) -> usize {
        usize::MAX
    }

    fn total(&self) -> usize {
        1 << 30
    }
}

/// An engine with this much memory.
fn engine(bytes: usize) -> Engine {
    let backend = Limited { left: bytes.into() };
    let engine = Engine::new(Device::new(-1, "cpu", Box::new(backend), 1));
    Engine { poisons: true, ..engine }
}

fn tensor<T: Element>(engine: &Engine, shape: &[usize], values: &[T]) -> View {
    let view = View::new(engine.device(), Meta::new(T::DTYPE, shape));
    assert_eq!(values.len(), view.meta.numel());
    // SAFETY: the bytes of numbers.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
    view.block.write(bytes).unwrap();
    view
}

/// The positions of a view's elements in its block, row-major.
fn places(view: &View) -> Vec<usize> {
    let mut found = vec![view.offset as isize];
    for (&extent, &stride) in view.meta.shape.iter().zip(&view.meta.strides) {
        let steps = || (0..extent as isize).map(|i| i * stride);
        found = found.iter().flat_map(|&base| steps().map(move |s| base + s)).collect();
    }
    found.into_iter().map(|place| place as usize).collect()
}

/// The elements, row-major.
fn values<T: Element>(view: &View) -> Vec<T> {
    let read = |bytes: &[u8]| {
        let start = bytes.as_ptr().cast::<T>();
        // SAFETY: the positions are in the block; a copy of it may be misaligned.
        let value = |place| unsafe { start.add(place).read_unaligned() };
        places(view).into_iter().map(value).collect()
    };
    view.block.read(read).unwrap()
}

/// Writes the first element of a float32 tensor's block as another library would: without telling
/// the engine.
fn poke(view: &View, value: f32) {
    assert!(view.meta.dtype == DType::Float32 && view.meta.numel() > 0);
    // SAFETY: the block has at least one element, and tests use it on one thread.
    unsafe { view.block.to_touch().unwrap().cast::<f32>().write(value) };
}

fn run(engine: &Engine, kind: impl Into<Kind>, inputs: &[&View]) -> Result<Outputs> {
    engine.submit(engine.turn(), &kind.into(), inputs.iter().copied().cloned().collect())
}

fn run_into(
    engine: &Engine,
    kind: impl Into<Kind>,
    inputs: &[&View],
    outputs: &[&View],
) -> Result<()> {
    let inputs = inputs.iter().copied().cloned().collect();
    let outputs: Vec<View> = outputs.iter().copied().cloned().collect();
    engine.submit_into(engine.turn(), &kind.into(), inputs, &outputs)
}

/// Another block on the same memory, as if it had been lent and lent back.
fn lent(view: &View) -> View {
    let (device, block) = (view.block.device(), &view.block);
    let owner = Box::new(block.clone());
    let block =
        crate::block::Block::foreign(device, block.bytes(), block.to_touch().unwrap(), owner);
    View { block, ..view.clone() }
}

fn kind(attributes: serde_json::Value) -> Kind {
    serde_json::from_value(attributes).unwrap()
}

fn binary(f: &str) -> Kind {
    kind(json!({"op": "binary", "f": f}))
}

fn sgd() -> Kind {
    kind(
        json!({"op": "update", "f": "sgd", "momentum": false, "nesterov": false, "weight_decay": false}),
    )
}

/// Records `step`, whose return value becomes the recording's results.
fn recorded(engine: &Engine, arguments: &[View], step: impl FnOnce() -> Vec<View>) -> Recording {
    record::begin(Recording::new(engine.device(), arguments)).unwrap();
    record::set_origin(Origin::at("net.py:7"));
    let results = step();
    let mut recording = crate::engine::end_recording(&results).unwrap();
    drop(results);
    recording.seal();
    recording
}

fn replay(engine: &Engine, graph: &Executable, arguments: &[View]) -> Result<Vec<View>> {
    graph.run(engine, engine.run()?, arguments)
}

fn float(shape: impl Into<crate::shape::Shape>) -> Meta {
    Meta::new(DType::Float32, shape)
}

#[test]
fn the_ledger_is_empty_at_the_end() {
    let engine = engine(1 << 20);
    let x = tensor(&engine, &[2, 3], &[1f32; 6]);
    let product = run(&engine, crate::ops::gemm::Matmul, &[&x, &x.permute(&[1, 0]).unwrap()]);
    drop((x, product.unwrap()));
    let ledger = engine.device().ledger();
    assert_eq!((ledger.in_use(), ledger.balance(Account::Scratch)), (0, 0));
    assert!(ledger.balance(Account::Kernels) > 0 && ledger.balance(Account::Pool) > 0);
    engine.trim();
    assert_eq!(ledger.reserved(), 0);
}

#[test]
fn prepared_operations_are_kept_up_to_a_number() {
    let engine = engine(1 << 20);
    let state = tensor(&engine, &[2], &[0i64; 2]);
    let held = || engine.device().ledger().balance(Account::Kernels);
    let advance = |by| run(&engine, crate::ops::random::Advance { by }, &[&state]).unwrap();
    advance(1);
    let one = held();
    advance(1);
    assert_eq!(held(), one);
    (2..9000).for_each(|by| drop(advance(by)));
    assert!(held() >= 8000 * one && held() <= 8192 * one);
    assert_eq!(values::<i64>(&state)[1], 1 + (1..9000).sum::<i64>());
}

#[test]
fn the_address_of_a_block_is_one_for_all_threads() {
    let engine = engine(1 << 20);
    let view = View::new(engine.device(), float([1000]));
    let addresses: Vec<usize> = std::thread::scope(|scope| {
        let ask = || view.address(false).unwrap().addr();
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(addresses.iter().all(|a| *a == addresses[0]));
    assert_eq!(values::<f32>(&view), [0.0; 1000]);
    assert_eq!(engine.device().ledger().in_use(), 4096);
}

/// An engine of another device than the host's names an operation whose result is not finite.
fn finds_what_is_not_finite(engine: &Engine) {
    let x = tensor(engine, &[2], &[1f32, 0.0]);
    let before = crate::kernels::check_finite(true);
    let done = run(engine, binary("div"), &[&x, &x]);
    crate::kernels::check_finite(before);
    let Err(crate::error::Error::NotFinite { report, .. }) = done else { panic!("{done:?}") };
    assert_eq!((report.outputs[0].nans, report.inputs[0].greatest), (1, 1.0));
}

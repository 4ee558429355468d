//! Random programs: nodes that read and write overlapping views of a few blocks.

use std::ops::Range;

use proptest::prelude::*;

use crate::device::cpu;
use crate::dtype::DType;
use crate::graph::Role::{self, *};
use crate::graph::testing::{Empty, Recorder};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::copy::Copy;
use crate::ops::{Meta, View};
use crate::view::repeats;

/// A view of a block: all of it, or a part with a stride.
#[derive(Clone, Debug)]
struct Look {
    block: usize,
    whole: bool,
    start: usize,
    count: usize,
    step: isize,
}

#[derive(Clone, Debug)]
struct Step {
    inputs: Vec<Look>,
    outputs: Vec<Look>,
    empty: Empty,
}

/// A program that has not been recorded yet.
#[derive(Clone, Debug)]
pub struct Program {
    blocks: Vec<(usize, Role)>,
    steps: Vec<Step>,
}

pub fn programs() -> impl Strategy<Value = Program> {
    let role = prop_oneof![1 => Just(Argument), 1 => Just(Captured), 1 => Just(Slot), 6 => Just(Temporary)];
    let size = prop_oneof![8 => Just(64usize), 2 => Just(100), 3 => 0usize..200];
    let blocks = prop::collection::vec((size, role), 1..30);
    let steps = prop::collection::vec(steps(), 1..24);
    (blocks, steps).prop_map(|(blocks, steps)| Program { blocks, steps })
}

fn steps() -> impl Strategy<Value = Step> {
    let kinds = [Binary { f: BinaryFn::Add }.into(), Copy.into()];
    let scratch = prop_oneof![4 => Just(0usize), 1 => 1usize..200];
    let empty = (prop::sample::select(kinds.to_vec()), 0..4, 0..8, scratch).prop_map(
        |(kind, updates, host, scratch)| Empty {
            kind,
            updates: updates == 0,
            host: host == 0,
            scratch,
        },
    );
    let inputs = prop::collection::vec(looks(), 0..4);
    let outputs = prop::collection::vec(looks(), 0..3);
    (inputs, outputs, empty).prop_map(|(inputs, outputs, empty)| Step { inputs, outputs, empty })
}

fn looks() -> impl Strategy<Value = Look> {
    let part = (0usize..200, 0usize..80, -2isize..4);
    (prop_oneof![5 => Just(0usize), 2 => Just(1), 1 => 0usize..30], 0..6, part).prop_map(
        |(block, whole, (start, count, step))| Look { block, whole: whole > 0, start, count, step },
    )
}

impl Program {
    /// Records the steps that an engine would record, without those that it would refuse or copy
    /// for first.
    pub fn record(&self) -> Recorder {
        let mut recorder = Recorder::default();
        let block = |&(size, role): &(usize, Role)| {
            let view = View::new(cpu::device(), Meta::new(DType::UInt8, [size]));
            recorder.number(&view, role);
            view
        };
        let blocks: Vec<View> = self.blocks.iter().map(block).collect();
        let untouched = |&(size, role): &(usize, Role)| vec![role != Temporary; size];
        let written = self.blocks.iter().map(untouched).collect();
        let mut recording = Recording { recorder, blocks, written, near: 0 };
        self.steps.iter().for_each(|step| recording.step(step));
        recording.recorder
    }
}

struct Recording {
    recorder: Recorder,
    blocks: Vec<View>,
    /// The bytes of each block that may be read.
    written: Vec<Vec<bool>>,
    /// The last block written, which the next step usually reads.
    near: usize,
}

impl Recording {
    fn step(&mut self, step: &Step) {
        let mut inputs: Vec<View> =
            step.inputs.iter().map(|look| look.view(&self.blocks, self.near)).collect();
        // An engine would fill memory before a dense read of bytes never written.
        inputs.retain(|view| view.meta.bytes() != view.byte_range().len() || self.may_read(view));
        let mut empty = step.empty.clone();
        empty.updates &= inputs.first().is_some_and(|view| !repeats(&view.meta));
        if empty.updates {
            let mut others = inputs.split_off(1);
            others.retain(|view| !view.overlaps(&inputs[0]));
            inputs.append(&mut others);
        }
        let mut outputs = Vec::new();
        for look in &step.outputs {
            let view = look.view(&self.blocks, self.near + 1);
            if may_write(&empty, &inputs, &outputs, &view) {
                outputs.push(view);
            }
        }
        let state = inputs[..empty.updates as usize].iter();
        state.chain(&outputs).for_each(|view| self.note(view));
        self.recorder.push_empty(&empty, &inputs, &outputs);
    }

    fn number(&self, view: &View) -> usize {
        self.recorder.queue.find(&view.block).unwrap() as usize
    }

    fn may_read(&self, view: &View) -> bool {
        self.written[self.number(view)][view.byte_range()].iter().all(|&written| written)
    }

    fn note(&mut self, view: &View) {
        self.near = self.number(view);
        self.written[self.near][view.byte_range()].fill(true);
    }
}

/// Whether an engine would accept this view as one more output.
fn may_write(empty: &Empty, inputs: &[View], outputs: &[View], view: &View) -> bool {
    let (o, pairs) = (empty.updates as usize + outputs.len(), empty.kind.family().in_place());
    let clash = |(i, input): (usize, &View)| {
        input.overlaps(view) && !(pairs.contains(&(i, o)) && input.is_same(view))
    };
    !repeats(&view.meta)
        && !outputs.iter().any(|other| other.overlaps(view))
        && !inputs.iter().enumerate().any(clash)
}

impl Look {
    fn view(&self, blocks: &[View], near: usize) -> View {
        let base = &blocks[(near + self.block) % blocks.len()];
        let size = base.meta.numel();
        if self.whole || size == 0 {
            return base.clone();
        }
        let step = self.step.unsigned_abs();
        let start = self.start % size;
        let room = if self.step < 0 { start } else { size - 1 - start };
        let count = self.count.min(room.checked_div(step).map_or(80, |steps| steps + 1));
        let meta = Meta { strides: [self.step][..].into(), ..Meta::new(DType::UInt8, [count]) };
        View { meta: meta.into(), offset: start, ..base.clone() }
    }
}

/// Whether two ranges share bytes.
pub fn meets(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

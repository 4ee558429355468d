//! The four workloads commonly used to compare task-graph libraries, as recordings of operations
//! that do little or nothing.

use std::sync::Arc;

use singa_rs::device::cpu;
use singa_rs::dtype::DType;
use singa_rs::graph::{Kernels, Queue, Role};
use singa_rs::kernels::cpu::Cpu;
use singa_rs::kernels::{Kernel, Prepared, kernel};
use singa_rs::ops::copy::Copy;
use singa_rs::ops::{Call, Effects, Kind, Meta, View};

/// For each task, the tasks it depends on.
pub type Rows = Vec<Vec<u32>>;

/// A name, and a function that generates approximately this many tasks.
pub type Workload = (&'static str, fn(usize) -> Rows);

/// All workloads.
pub const WORKLOADS: [Workload; 4] =
    [("chain", chain), ("tree", tree), ("wavefront", wavefront), ("random", random)];

/// Each task has the next one as its successor.
fn chain(count: usize) -> Rows {
    (0..count as u32).map(|task| task.checked_sub(1).into_iter().collect()).collect()
}

/// Each task has two successors, level by level.
fn tree(count: usize) -> Rows {
    (0..count as u32).map(|task| task.checked_sub(1).map(|n| n / 2).into_iter().collect()).collect()
}

/// A square, row by row: each task depends on the one above and the one to the left.
fn wavefront(count: usize) -> Rows {
    let side = (count as f64).sqrt().round().max(1.0) as u32;
    let above = |row: u32, column: u32| row.checked_sub(1).map(|row| row * side + column);
    let left = |row: u32, column: u32| column.checked_sub(1).map(|column| row * side + column);
    let task = |n: u32| above(n / side, n % side).into_iter().chain(left(n / side, n % side));
    (0..side * side).map(|n| task(n).collect()).collect()
}

/// The maximum number of tasks of a layer.
const WIDTH: usize = 256;

/// Layers of up to 256 tasks, each of which has one to four successors in the next layer.
fn random(count: usize) -> Rows {
    let width = WIDTH.min((count as f64).sqrt().ceil() as usize).max(1);
    let mut rows: Rows = vec![Vec::new(); count];
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for task in 0..count {
        let next = (task / width + 1) * width;
        for _ in 0..1 + draw(4) {
            let to = next + draw(width);
            if to < count && rows[to].last() != Some(&(task as u32)) {
                rows[to].push(task as u32);
            }
        }
    }
    rows.iter_mut().for_each(|row| row.dedup());
    rows
}

/// The work of a task.
#[derive(Clone, Copy)]
pub enum Work {
    /// Nothing.
    Empty,
    /// A few hundred dependent operations: about a microsecond.
    Tiny,
}

/// A recording under construction.
pub struct Tasks {
    pub queue: Queue,
    pub roles: Vec<Role>,
    pub kernels: Kernels,
    /// The output of each task.
    made: Vec<View>,
    meta: Arc<Meta>,
    /// By number of inputs.
    calls: Vec<Arc<Call>>,
}

impl Tasks {
    /// Prepares operations for these tasks.
    pub fn new(rows: &Rows, work: Work) -> Tasks {
        let meta = Arc::new(Meta::new(DType::Float32, [1]));
        let most = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut kernels = Kernels::default();
        let mut prepare = |inputs: usize| {
            let call = operation(&meta, inputs);
            let op = Prepared::with(call.clone(), &Cpu, 1, work.kernel());
            kernels.insert(&call, op.into());
            call
        };
        let calls = (0..=most).map(&mut prepare).collect();
        let (queue, roles, made) = (Queue::default(), Vec::new(), Vec::with_capacity(rows.len()));
        Tasks { queue, roles, kernels, made, meta, calls }
    }

    /// Records the tasks: each reads the outputs of the tasks it depends on.
    pub fn record(mut self, rows: &Rows) -> Tasks {
        for row in rows {
            let inputs: Vec<View> = row.iter().map(|&n| self.made[n as usize].clone()).collect();
            let output = View::of(cpu::device(), &self.meta);
            self.queue.number(&output.block);
            self.roles.push(Role::Slot);
            let call = self.calls[row.len()].clone();
            self.queue.push(call, &inputs, std::slice::from_ref(&output), 0);
            self.made.push(output);
        }
        self
    }
}

fn operation(meta: &Arc<Meta>, inputs: usize) -> Arc<Call> {
    let view = View::of(cpu::device(), meta);
    let mut call = Call::new(&Kind::from(Copy), &[view][..]).expect("an operation");
    call.inputs = (0..inputs).map(|_| meta.clone()).collect();
    call.effects = Effects::PURE;
    Arc::new(call)
}

impl Work {
    fn kernel(self) -> Arc<dyn Kernel> {
        match self {
            Work::Empty => kernel(0, |_| Ok(())),
            Work::Tiny => kernel(0, |_| {
                let steps = (0..500u64).fold(1, |x, n| std::hint::black_box(x ^ n));
                std::hint::black_box(steps);
                Ok(())
            }),
        }
    }
}

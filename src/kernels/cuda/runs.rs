//! Elements joined with others at entries along an axis, all those of one entry by one thread and in
//! their order, which needs no atomics: the same bits in every run.

use super::order;
use super::program::{Place, Program};
use super::source::{Source, THREADS};
use super::walk::Walk;
use crate::dtype::DType;
use crate::ops::Meta;

/// From so many lines on, a thread for each, which goes through all of its entries, is enough for a
/// GPU.
pub const MANY: usize = 1 << 15;
/// So few entries are gone through sooner than they are sorted.
const FEW: usize = 64;

/// Whether it is worthwhile to sort the entries of lines that are as long.
pub fn are_worthwhile(lines: usize, length: usize) -> bool {
    lines < MANY && length > FEW
}

/// How elements are joined with others at entries.
pub struct Runs {
    /// The operation.
    pub name: &'static str,
    /// Lines of entries, of which negative ones count from `size`.
    pub entries: Meta,
    /// The extent that entries are within.
    pub size: usize,
    /// The elements at the first entry of each line, and what they are joined with at entry 0: some
    /// columns for each line.
    pub first: Walk,
    /// The elements along a line.
    pub along: Walk,
    /// The step from entry to entry.
    pub step: isize,
    /// The types of the elements, and of what they are joined with.
    pub dtypes: [DType; 2],
    /// The statement that returns what an element `b` makes of `a`.
    pub join: &'static str,
}

impl Runs {
    /// Adds the kernels for elements, entries, and what they are joined with.
    pub fn add(&self, mut program: Program, [from, entries, to]: [Place; 3]) -> Program {
        let length = self.along.count;
        let dense = Meta::new(DType::Int64, [self.entries.numel() / length, length]);
        let wrapped = program.take(dense.bytes());
        program = program.then(self.wrapped(), &[entries, wrapped]);
        let (program, order) = order::ascending(program, self.name, &dense, wrapped);
        program.then(self.joined(), &[from, wrapped, order, to])
    }

    /// The entries as they are counted from the start, row-major.
    fn wrapped(&self) -> Source {
        let dense = Meta::new(DType::Int64, self.entries.shape.clone());
        let axes: Vec<usize> = (0..dense.shape.rank()).collect();
        let mut source = Source::new(self.name, &[self.entries.dtype], &[DType::Int64])
            .with(super::index::TEMPLATES);
        let size = source.size(self.size);
        let at = source.each(&Walk::along(&axes, &[&self.entries, &dense]));
        source.line(format!("    g.out0[{}] = entry_of(g.in0[{}], {size});", at[1], at[0]));
        source.end();
        source
    }

    fn joined(&self) -> Source {
        let [from, to] = self.dtypes;
        let mut source = Source::new(self.name, &[from, DType::Int64, DType::Int64], &[to])
            .with(super::index::TEMPLATES);
        let [first, along] = [&self.first, &self.along].map(|walk| source.walk(walk));
        let (length, lines) = (self.along.count, self.entries.numel() / self.along.count);
        let sizes = [length, self.first.count / lines, lines];
        let sizes = sizes.map(|size| source.size(size)).join(", ");
        let step = source.integer(self.step as i64);
        source.line(format!(
            "runs(g.in0, g.in1, g.in2, g.out0, {first}, {along}, {sizes}, {step}, \
             [](auto a, auto b) {{ {} }});",
            self.join
        ));
        source.blocks((self.first.count * length).div_ceil(THREADS as usize))
    }
}

//! The text of a kernel, and how it is launched.

use std::fmt::Write;

use super::types::stored;
use super::walk::Walk;
use crate::dtype::DType;

/// What every kernel begins with.
pub const PRELUDE: &str = concat!(
    include_str!("c/numbers.cu"),
    include_str!("c/functions.cu"),
    include_str!("c/gamma.cu"),
    include_str!("c/walk.cu")
);
/// The threads of a block, unless a kernel says otherwise.
pub const THREADS: u32 = 256;
/// The neighbours that a thread takes at once (`c/walk.cu`).
const WIDE: usize = 4;
/// The most blocks: further elements are left to the same threads.
const BLOCKS: usize = 1 << 16;

/// A kernel's text, and how it is launched. It has one argument, a structure of 64-bit fields: the
/// addresses of its tensors, then the words.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The operation.
    pub name: &'static str,
    /// Templates that the body calls.
    templates: Vec<&'static str>,
    fields: String,
    body: String,
    /// The fields after the addresses.
    pub words: Vec<u64>,
    /// The number of blocks.
    pub blocks: u32,
    /// The number of threads of a block.
    pub threads: u32,
    /// Whether threads wait for each other.
    pub has_barriers: bool,
}

impl Source {
    /// A kernel without a body for tensors of these types, inputs first: `in0`, `in1`, `out0`, ...
    pub fn new(name: &'static str, inputs: &[DType], outputs: &[DType]) -> Source {
        let mut fields = String::new();
        for (i, &dtype) in inputs.iter().enumerate() {
            let _ = writeln!(fields, "    const {} *in{i};", stored(dtype));
        }
        for (i, &dtype) in outputs.iter().enumerate() {
            let _ = writeln!(fields, "    {} *out{i};", stored(dtype));
        }
        Source {
            name,
            templates: Vec::new(),
            fields,
            body: String::new(),
            words: Vec::new(),
            blocks: 1,
            threads: THREADS,
            has_barriers: false,
        }
    }

    /// Adds a text of templates that the body calls.
    pub fn with(mut self, templates: &'static str) -> Source {
        self.templates.push(templates);
        self
    }

    /// Lets threads wait for each other.
    pub fn waiting(mut self) -> Source {
        self.has_barriers = true;
        self
    }

    /// Lets the threads of a block share so many elements, and wait for each other. There are no more
    /// threads than elements, in whole warps.
    pub fn sharing(mut self, elements: usize) -> Source {
        self.threads = elements.next_multiple_of(32).clamp(32, THREADS as usize) as u32;
        self.waiting()
    }

    /// As many blocks as there are tasks, which a block takes one by one where they are too many.
    pub fn blocks(mut self, tasks: usize) -> Source {
        self.blocks = tasks.clamp(1, BLOCKS) as u32;
        self
    }

    /// Adds a line to the body.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.body, "    {}", line.as_ref());
    }

    /// Adds a whole number to the arguments; its name in the body.
    pub fn integer(&mut self, value: i64) -> String {
        self.field("int64", &[value as u64])
    }

    /// Adds a size to the arguments; its name in the body.
    pub fn size(&mut self, value: usize) -> String {
        self.integer(value as i64)
    }

    /// Adds a structure of whole numbers to the arguments; its name in the body.
    pub fn record(&mut self, kind: &str, values: impl IntoIterator<Item = i64>) -> String {
        let words: Vec<u64> = values.into_iter().map(|value| value as u64).collect();
        self.field(kind, &words)
    }

    /// Adds a number to the arguments; its name in the body.
    pub fn number(&mut self, value: f64) -> String {
        self.field("double", &[value.to_bits()])
    }

    /// Adds a walk to the arguments; its name in the body.
    pub fn walk(&mut self, walk: &Walk) -> String {
        let kind = format!("Walk<{}, {}, {}>", walk.index(), walk.rank(), walk.tensors);
        self.field(&kind, &walk.words())
    }

    fn field(&mut self, kind: &str, words: &[u64]) -> String {
        let name = format!("p{}", self.words.len());
        let _ = writeln!(self.fields, "    {kind} {name};");
        self.words.extend(words);
        format!("g.{name}")
    }

    /// Begins a loop in which each thread takes some of the elements of a walk; the places of the
    /// tensors there. [`Source::end`] ends it.
    pub fn each(&mut self, walk: &Walk) -> Vec<String> {
        self.blocks = walk.count.div_ceil(self.threads as usize).clamp(1, BLOCKS) as u32;
        let (index, count) = (walk.index(), self.size(walk.count));
        self.line(format!("const {index} threads = ({index})gridDim.x * blockDim.x;"));
        self.line(format!("const {index} first = ({index})blockIdx.x * blockDim.x + threadIdx.x;"));
        self.line(format!("for ({index} i = first; i < ({index}){count}; i += threads) {{"));
        if walk.is_flat() {
            return vec!["i".to_string(); walk.tensors];
        }
        let name = self.walk(walk);
        self.line(format!("    int64 at[{}];", walk.tensors));
        self.line(format!("    {name}.at(i, at);"));
        (0..walk.tensors).map(|t| format!("at[{t}]")).collect()
    }

    /// Ends the loop of [`Source::each`].
    pub fn end(&mut self) {
        self.line("}");
    }

    /// The same, with the elements of all tensors in variables: where these are dense, each thread
    /// takes some neighbours at once. [`Source::end_moved`] ends it.
    pub fn each_moved(&mut self, walk: &Walk, dtypes: &[DType], inputs: usize) -> Vec<String> {
        if !walk.is_flat() {
            let places = self.each(walk);
            let place = |(t, place): (usize, &String)| match t.checked_sub(inputs) {
                None => format!("g.in{t}[{place}]"),
                Some(o) => format!("g.out{o}[{place}]"),
            };
            return places.iter().enumerate().map(place).collect();
        }
        let tasks = walk.count.div_ceil(self.threads as usize * WIDE);
        self.blocks = tasks.clamp(1, BLOCKS) as u32;
        let (index, count) = (walk.index(), self.size(walk.count));
        self.line(format!("const {index} step = ({index})gridDim.x * blockDim.x * WIDE;"));
        self.line(format!("const {index} first = ({index})blockIdx.x * blockDim.x + threadIdx.x;"));
        self.line(format!("for ({index} i = first * WIDE; i < ({index}){count}; i += step) {{"));
        for (t, &dtype) in dtypes.iter().enumerate() {
            self.line(format!("    {} x{t}[WIDE];", stored(dtype)));
            if t < inputs {
                self.line(format!("    fetch(x{t}, g.in{t}, i, {count});"));
            }
        }
        self.line("    for (int u = 0; u < WIDE; u++) {");
        (0..dtypes.len()).map(|t| format!("x{t}[u]")).collect()
    }

    /// Ends the loop of [`Source::each_moved`].
    pub fn end_moved(&mut self, walk: &Walk, outputs: usize) {
        if walk.is_flat() {
            self.line("    }");
            let (count, first) = (self.size(walk.count), walk.tensors - outputs);
            for o in 0..outputs {
                self.line(format!("    keep(x{}, g.out{o}, i, {count});", first + o));
            }
        }
        self.line("}");
    }

    /// The name of the function, which is none of C's.
    pub fn entry(&self) -> String {
        format!("run_{}", self.name)
    }

    /// The text that follows the prelude.
    pub fn text(&self) -> String {
        let (Source { fields, body, .. }, entry) = (self, self.entry());
        let templates = self.templates.join("\n");
        format!(
            "{templates}\nstruct Arguments {{\n{fields}}};\n\n\
             extern \"C\" __global__ void {entry}(const Arguments g) {{\n{body}}}\n"
        )
    }
}

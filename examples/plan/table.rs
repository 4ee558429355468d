//! Pieces of memory as comma-separated values.

use std::fmt::Write as _;

use singa_rs::graph::Lifetime;
use singa_rs::graph::plan::traces::Trace;

/// The columns, which may stand in the first line.
const HEADER: &str = "id,lower,upper,size";

/// Pieces and what they are called.
pub struct Table {
    pub names: Vec<String>,
    pub trace: Trace,
}

impl Table {
    /// Reads rows of a name, the first step of a lifetime, the one after its last, and a size.
    ///
    /// # Errors
    /// The line that is wrong, what it holds and what it should.
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut table = Table { names: Vec::new(), trace: Trace::default() };
        for (line, row) in text.lines().enumerate() {
            let fields: Vec<&str> = row.split(',').map(str::trim).collect();
            let is_header = line == 0 && fields == HEADER.split(',').collect::<Vec<_>>();
            if is_header || row.trim().is_empty() {
                continue;
            }
            let message = |fault| format!("line {}: got {row:?}, {fault}", line + 1);
            table.push(&fields).map_err(message)?;
        }
        Ok(table)
    }

    fn push(&mut self, fields: &[&str]) -> Result<(), String> {
        let [name, lower, upper, size] = fields else {
            return Err(format!("want {HEADER}"));
        };
        let step = |field: &str| {
            field.parse::<u32>().map_err(|_| format!("want a step below 2^32, not {field:?}"))
        };
        let (lower, upper) = (step(lower)?, step(upper)?);
        if lower >= upper {
            return Err("want lower < upper".into());
        }
        let size = size.parse().map_err(|_| format!("want a size in bytes, not {size:?}"))?;
        self.names.push(name.to_string());
        self.trace.lifetimes.push(Lifetime { first: lower, last: upper - 1 });
        self.trace.sizes.push(size);
        Ok(())
    }

    /// Where each piece lies, as text.
    pub fn offsets(&self, offsets: &[usize]) -> String {
        let mut text = String::from("id,offset\n");
        for (name, offset) in self.names.iter().zip(offsets) {
            _ = writeln!(text, "{name},{offset}");
        }
        text
    }
}

/// Pieces as text, numbered.
pub fn print(trace: &Trace) -> String {
    let mut text = format!("{HEADER}\n");
    for (number, (life, size)) in trace.lifetimes.iter().zip(&trace.sizes).enumerate() {
        _ = writeln!(text, "{number},{},{},{size}", life.first, life.last + 1);
    }
    text
}

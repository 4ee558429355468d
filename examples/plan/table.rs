//! Pieces of memory as comma-separated values.

use std::fmt::Write as _;

use singa_rs::graph::Lifetime;
use singa_rs::packing::traces::Trace;

/// The columns, optionally given in the first line.
const HEADER: &str = "id,lower,upper,size";

/// Pieces and their names.
pub struct Table {
    pub names: Vec<String>,
    pub trace: Trace,
}

impl Table {
    /// Parses rows of a name, the first step of a lifetime, the step after its last, and a size.
    ///
    /// # Errors
    /// The faulty line, its content and the expected form.
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

    /// The offset of each piece, as text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let mut trace = Trace::default();
        trace.lifetimes.extend([(0, 2), (2, 2)].map(|(first, last)| Lifetime { first, last }));
        trace.sizes.extend([64, 0]);
        let text = print(&trace);
        assert_eq!(text, "id,lower,upper,size\n0,0,3,64\n1,2,3,0\n");
        for text in [&text[..], "0,0,3,64\n\n 1, 2, 3, 0 \r\n"] {
            let table = Table::parse(text).unwrap();
            assert_eq!(table.trace.lifetimes, trace.lifetimes);
            assert_eq!(table.trace.sizes, trace.sizes);
            assert_eq!(table.offsets(&[0, 7]), "id,offset\n0,0\n1,7\n");
        }
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        for (row, want) in [
            ("a,0,1", "id,lower,upper,size"),
            ("a,0,1,2,3", "id,lower,upper,size"),
            ("a,x,1,2", "step"),
            ("a,0,4294967296,2", "step"),
            ("a,1,1,2", "lower < upper"),
            ("a,0,1,-2", "size"),
            ("id,lower,upper,size", "step"),
        ] {
            let message = Table::parse(&format!("ok,0,1,2\n{row}\n")).err().unwrap();
            assert!(message.starts_with("line 2: ") && message.contains(want), "{message}");
        }
    }
}

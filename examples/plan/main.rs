//! Plans memory for lifetimes from a file, or checks whether a given amount of memory suffices.
//!
//! ```sh
//! cargo run --release --no-default-features --example plan -- FILE.csv
//! ```
//!
//! Exits with 0 on success if everything fits, 1 if it does not fit, 2 on bad arguments or files, 3
//! if the time limit was reached without an answer.

mod compare;
mod options;
mod table;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use options::{Command, Kind, Make, Options};
use singa_rs::packing::exact::{self, Effort, Method, Packing};
use singa_rs::packing::{self, traces};
use table::Table;

const NO: u8 = 1;
const BAD: u8 = 2;
const UNKNOWN: u8 = 3;

fn main() -> ExitCode {
    let result = Command::parse(std::env::args().skip(1)).and_then(|command| match command {
        Command::Plan(options) => run(&options),
        Command::Make(make) => write(&make),
        Command::Compare(compare) => {
            compare::run(compare.seconds, compare.seeds);
            Ok(ExitCode::SUCCESS)
        }
    });
    result.unwrap_or_else(|message| {
        eprintln!("plan: {message}");
        ExitCode::from(BAD)
    })
}

/// Plans one file.
fn run(options: &Options) -> Result<ExitCode, String> {
    let name = &options.file;
    let text = fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))?;
    let table = Table::parse(&text).map_err(|message| format!("{name}: {message}"))?;
    let start = Instant::now();
    let (answer, offsets) = match options.capacity {
        None => height(&table, options),
        Some(capacity) => fits(&table, options, capacity),
    };
    println!(
        "bound {}",
        packing::bound(&table.trace.lifetimes, &table.trace.sizes, options.alignment)
    );
    println!("milliseconds {:.3}", start.elapsed().as_secs_f64() * 1e3);
    if let (Some(file), Some(offsets)) = (&options.offsets, offsets) {
        fs::write(file, table.offsets(&offsets)).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(ExitCode::from(answer))
}

/// The exit status, and the offsets if there are any.
type Answer = (u8, Option<Vec<usize>>);

/// The lowest height that the planner reaches.
fn height(table: &Table, options: &Options) -> Answer {
    let plan = packing::plan(&table.trace.lifetimes, &table.trace.sizes, options.alignment);
    println!("height {}", plan.height);
    (0, Some(plan.offsets))
}

/// Whether a capacity suffices: the planner first, unless a method was chosen, then the exact
/// search.
fn fits(table: &Table, options: &Options, capacity: usize) -> Answer {
    let (lifetimes, sizes) = (&table.trace.lifetimes, &table.trace.sizes);
    let effort = Effort::until(Instant::now() + Duration::from_secs_f64(options.seconds));
    if options.method == Method::Any {
        let plan = packing::plan(lifetimes, sizes, options.alignment);
        if plan.height <= capacity {
            println!("fits yes");
            return (0, Some(plan.offsets));
        }
    }
    let packing =
        exact::pack(lifetimes, sizes, options.alignment, capacity, options.method, effort);
    let (word, answer) = match packing {
        Packing::Fits(offsets) => ("yes", (0, Some(offsets))),
        Packing::Impossible => ("no", (NO, None)),
        Packing::Unknown => ("unknown", (UNKNOWN, None)),
    };
    println!("fits {word}");
    answer
}

/// Writes a generated trace.
fn write(make: &Make) -> Result<ExitCode, String> {
    let is_packing = matches!(make.kind, Kind::Packing | Kind::Loose);
    if is_packing && make.count > traces::MOST_BOXES {
        return Err(format!("COUNT: got {}, want at most {}", make.count, traces::MOST_BOXES));
    }
    let trace = match make.kind {
        Kind::Training => traces::training(make.count, make.seed),
        Kind::Pareto => traces::pareto(make.count, make.seed),
        Kind::Packing => traces::packing(make.count, make.seed, false),
        Kind::Loose => traces::packing(make.count, make.seed, true),
    };
    let file = &make.file;
    fs::write(file, table::print(&trace)).map_err(|error| format!("{file}: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

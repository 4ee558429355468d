//! The command line.

use std::str::FromStr;

use singa_rs::packing::exact::Method;

const USAGE: &str = "usage:
  plan FILE.csv [--alignment BYTES] [--offsets OUT.csv]
       [--capacity BYTES [--seconds SECONDS] [--method any|tiling|branch|floors]]
  plan make training|pareto|packing|loose COUNT SEED FILE.csv
  plan compare SECONDS SEEDS
FILE.csv holds rows of id,lower,upper,size: steps from lower on, upper not included, and bytes.";

/// The command to run.
pub enum Command {
    Plan(Options),
    Make(Make),
    Compare(Compare),
}

/// How to compare the exact searches on hard packings.
pub struct Compare {
    /// The limit for each search of each packing.
    pub seconds: f64,
    /// Packings of each kind and size.
    pub seeds: u64,
}

/// How to plan a file.
pub struct Options {
    pub file: String,
    pub alignment: usize,
    pub capacity: Option<usize>,
    pub seconds: f64,
    pub method: Method,
    pub offsets: Option<String>,
}

/// A trace to generate and write.
pub struct Make {
    pub kind: Kind,
    pub count: usize,
    pub seed: u64,
    pub file: String,
}

/// The generated traces.
#[derive(Clone, Copy)]
pub enum Kind {
    Training,
    Pareto,
    Packing,
    /// Packings in which some pieces are smaller than the gaps they fill.
    Loose,
}

impl Command {
    /// # Errors
    /// A message with the mistake and the expected form.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
        let arguments: Vec<String> = arguments.collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words[..] {
            ["make", kind, count, seed, file] => make(kind, count, seed, file).map(Command::Make),
            ["compare", limit, seeds] => {
                let (seconds, seeds) = (seconds("SECONDS", limit)?, number("SEEDS", seeds)?);
                Ok(Command::Compare(Compare { seconds, seeds }))
            }
            [file, ref rest @ ..]
                if !file.starts_with('-') && !["make", "compare"].contains(&file) =>
            {
                options(file, rest).map(Command::Plan)
            }
            _ => Err(USAGE.into()),
        }
    }
}

fn make(kind: &str, count: &str, seed: &str, file: &str) -> Result<Make, String> {
    let kind = match kind {
        "training" => Kind::Training,
        "pareto" => Kind::Pareto,
        "packing" => Kind::Packing,
        "loose" => Kind::Loose,
        _ => return Err(format!("got {kind:?}, want a kind of trace\n{USAGE}")),
    };
    let (count, seed) = (number("COUNT", count)?, number("SEED", seed)?);
    Ok(Make { kind, count, seed, file: file.into() })
}

fn options(file: &str, rest: &[&str]) -> Result<Options, String> {
    let (alignment, method) = (1, Method::Any);
    let mut options = Options {
        file: file.into(),
        alignment,
        capacity: None,
        seconds: 60.0,
        method,
        offsets: None,
    };
    for pair in rest.chunks(2) {
        let &[option, value] = pair else {
            return Err(format!("{} lacks a value\n{USAGE}", pair[0]));
        };
        options.set(option, value)?;
    }
    Ok(options)
}

impl Options {
    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "--alignment" => self.alignment = number::<usize>(option, value)?.max(1),
            "--capacity" => self.capacity = Some(number(option, value)?),
            "--seconds" => self.seconds = seconds(option, value)?,
            "--method" => self.method = method(value)?,
            "--offsets" => self.offsets = Some(value.into()),
            _ => return Err(format!("got {option:?}, want an option\n{USAGE}")),
        }
        Ok(())
    }
}

fn number<T: FromStr>(what: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{what}: got {text:?}, want a number"))
}

fn seconds(what: &str, text: &str) -> Result<f64, String> {
    let seconds: f64 = number(what, text)?;
    let is_duration = (0.0..=1e9).contains(&seconds);
    is_duration.then_some(seconds).ok_or(format!("{what}: got {text:?}, want 0 to 1e9"))
}

fn method(text: &str) -> Result<Method, String> {
    match text {
        "any" => Ok(Method::Any),
        "tiling" => Ok(Method::Tiling),
        "branch" => Ok(Method::Branch),
        "floors" => Ok(Method::Floors),
        _ => Err(format!("--method: got {text:?}, want any, tiling, branch or floors")),
    }
}

//! CUDA's assembler, for tests: what kernels take of GPUs that are not there.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::refusal;
use crate::error::Result;

/// The architectures that kernels are assembled for.
const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// What a kernel takes: registers of a thread, bytes of shared memory of a block, and bytes of a
/// thread's memory, for arrays and for registers that are spilled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Taken {
    registers: usize,
    shared: usize,
    stack: usize,
    spilled: usize,
}

/// What a kernel may take: two blocks of 256 threads fit a multiprocessor of the oldest GPUs, which
/// has 65,536 registers and 64 KiB. Some of CUDA's own functions have small arrays in memory, such as
/// sines of large arguments.
const MOST: Taken = Taken { registers: 128, shared: 24 << 10, stack: 256, spilled: 0 };

/// Assembles a kernel for each architecture by the assembler that `SINGA_RS_PTXAS` names, if it names
/// one.
///
/// # Errors
/// [`crate::Error::Device`] where it is refused, or takes more than it may.
pub fn check(name: &str, ptx: &[u8]) -> Result<()> {
    static ASSEMBLER: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("SINGA_RS_PTXAS").map(PathBuf::from));
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let Some(assembler) = &*ASSEMBLER else { return Ok(()) };
    let own = format!("singa_rs-{}-{}.ptx", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let (file, failed) = (std::env::temp_dir().join(own), |e: io::Error| refusal(e.to_string()));
    // The text ends with a zero.
    std::fs::write(&file, ptx.strip_suffix(b"\0").unwrap_or(ptx)).map_err(failed)?;
    let checked = ARCHITECTURES.into_iter().try_for_each(|architecture| {
        let taken = taken(assembler, &file, architecture)?;
        taken.check(name, architecture)
    });
    std::fs::remove_file(file).map_err(failed)?;
    checked
}

impl Taken {
    fn check(self, name: &str, architecture: &str) -> Result<()> {
        let fits = self.registers <= MOST.registers
            && self.shared <= MOST.shared
            && self.stack <= MOST.stack
            && self.spilled == MOST.spilled;
        let why = || refusal(format!("{name} takes {self:?} of {architecture}, not {MOST:?}"));
        crate::ensure!(fits, why());
        Ok(())
    }
}

fn taken(assembler: &Path, ptx: &Path, architecture: &str) -> Result<Taken> {
    let mut command = Command::new(assembler);
    command.args(["-v", "--output-file", "/dev/null", "--gpu-name", architecture]).arg(ptx);
    let output = command.output().map_err(|e| refusal(format!("{command:?}: {e}")))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    crate::ensure!(output.status.success(), refusal(text));
    Ok(Taken {
        registers: before(&text, " registers"),
        shared: before(&text, " bytes smem"),
        stack: before(&text, " bytes stack frame"),
        spilled: before(&text, " bytes spill stores") + before(&text, " bytes spill loads"),
    })
}

/// The number that stands before some words; 0 where they are not there.
fn before(text: &str, words: &str) -> usize {
    let Some((front, _)) = text.split_once(words) else { return 0 };
    let is_no_digit = |c: char| !c.is_ascii_digit();
    front.rsplit(is_no_digit).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn numbers_stand_before_their_words() {
        let text = "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n\
                    ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem\n";
        let words = [" registers", " bytes smem", " bytes spill loads", " bytes gmem"];
        assert_eq!(words.map(|words| before(text, words)), [40, 2048, 4, 0]);
    }
}

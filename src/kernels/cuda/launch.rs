//! Compiled programs, which are put on a stream.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use smallvec::SmallVec;

use super::check::{Check, NONE};
use super::program::{Place, Program, Step};
use super::source::{PRELUDE, Source};
use crate::device::cuda::{Code, Driver, Function, Launch};
use crate::error::{Error, Result};
use crate::kernels::{Io, Kernel};

fn with_code<T>(source: &Source, compile: impl FnOnce(Code) -> Result<T>) -> Result<T> {
    let (name, text, has_barriers) = (source.entry(), source.text(), source.has_barriers);
    compile(Code { name: &name, prelude: PRELUDE, text: &text, has_barriers })
}

/// One compiled kernel and its arguments but for the addresses.
struct Compiled {
    function: Function,
    words: Vec<u64>,
    blocks: u32,
    threads: u32,
}

impl Compiled {
    fn new(driver: &dyn Driver, source: &Source) -> Result<Compiled> {
        let function = with_code(source, |code| driver.compile(code))?;
        let Source { words, blocks, threads, .. } = source;
        Ok(Compiled { function, words: words.clone(), blocks: *blocks, threads: *threads })
    }

    /// # Safety
    /// The addresses are those of the tensors that the text was made for.
    unsafe fn launch(&self, driver: &dyn Driver, io: &Io, addresses: &[u64]) -> Result<()> {
        let argument: SmallVec<[u64; 64]> = addresses.iter().chain(&self.words).copied().collect();
        let launch = Launch { blocks: self.blocks, threads: self.threads, stream: io.stream() };
        // SAFETY: by the caller's promise; streams run in the order in which memory is given away
        // again.
        unsafe { driver.launch(self.function, launch, &argument) }
    }
}

/// What is checked before a program runs, and a word of the GPU for the answer.
struct Checking {
    check: Arc<Check>,
    compiled: Compiled,
    answer: NonNull<u8>,
}

/// A compiled program.
pub struct Runner {
    driver: &'static dyn Driver,
    steps: Vec<(Compiled, Vec<Place>)>,
    scratch: usize,
    checking: Vec<Checking>,
}

// SAFETY: the address of the answer is used under the device's run lock alone.
unsafe impl Send for Runner {}
// SAFETY: as above.
unsafe impl Sync for Runner {}

impl Runner {
    /// Compiles a program.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn new(driver: &'static dyn Driver, program: Program) -> Result<Runner> {
        let step = |Step { source, places }| Ok((Compiled::new(driver, &source)?, places));
        let steps = program.steps.into_iter().map(step).collect::<Result<_>>()?;
        let checks = program.checks.into_iter().map(|check| Checking::new(driver, check));
        let checking = checks.collect::<Result<_>>()?;
        Ok(Runner { driver, steps, scratch: program.scratch, checking })
    }
}

impl Checking {
    fn new(driver: &dyn Driver, check: Arc<Check>) -> Result<Checking> {
        let compiled = Compiled::new(driver, &check.source)?;
        let refused = || Error::Device { op: "cuda".into(), message: "no memory is left".into() };
        let answer = driver.allocate(size_of::<u64>()).ok_or_else(refused)?;
        Ok(Checking { check, compiled, answer })
    }

    /// Waits for the answer.
    fn holds(&self, driver: &dyn Driver, io: &Io) -> Result<()> {
        let first = io.input::<u8>(self.check.input);
        let addresses = [first.expose_provenance() as u64, self.answer.addr().get() as u64];
        let mut found = [0; size_of::<u64>()];
        // SAFETY: the word is this check's; the input has the elements of its meta.
        unsafe {
            driver.upload(&NONE.to_ne_bytes(), self.answer)?;
            self.compiled.launch(driver, io, &addresses)?;
            driver.download(self.answer, &mut found)?;
        }
        match u64::from_ne_bytes(found) {
            NONE => Ok(()),
            i => Err(self.refused(driver, first, i)?),
        }
    }

    fn refused(&self, driver: &dyn Driver, first: *const u8, i: u64) -> Result<Error> {
        let mut bytes = vec![0; self.check.element()];
        let element = first.wrapping_offset(self.check.place(i)).cast_mut();
        let element = NonNull::new(element).expect("a tensor's memory has an address");
        // SAFETY: it is one of the input's elements.
        unsafe { driver.download(element, &mut bytes) }?;
        Ok(self.check.refused(&bytes))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        for checking in &self.checking {
            // SAFETY: it was allocated with the check, and is used by it alone.
            unsafe { self.driver.free(checking.answer) };
        }
    }
}

impl Kernel for Runner {
    fn scratch(&self) -> usize {
        self.scratch
    }

    fn bytes(&self) -> usize {
        let of = |(step, places): &(Compiled, Vec<Place>)| {
            size_of_val(step) + size_of_val(&*step.words) + size_of_val(&**places)
        };
        size_of_val(self) + self.steps.iter().map(of).sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        let address = |place: &Place| {
            let start = match *place {
                Place::Input(i) => io.input::<u8>(i),
                Place::Output(o, offset) => io.output::<u8>(o).wrapping_offset(offset).cast_const(),
                Place::Scratch(offset) => io.scratch::<u8>().wrapping_add(offset).cast_const(),
            };
            start.expose_provenance() as u64
        };
        for (step, places) in &self.steps {
            let addresses: SmallVec<[u64; 16]> = places.iter().map(address).collect();
            // SAFETY: the places are those that the text was made for.
            unsafe { step.launch(self.driver, io, &addresses)? };
        }
        Ok(())
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.checking.iter().try_for_each(|checking| checking.holds(self.driver, io))
    }
}

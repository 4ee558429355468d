//! Compiled programs, which are put on a stream.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::check::{Check, NONE};
use super::program::{Library, Place, Program, Step};
use super::source::{PRELUDE, Source};
use crate::device::cuda::{Call, Code, Demand, Driver, Function, Launch};
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

/// A kernel with the tensors that it is given.
struct Placed {
    kernel: Compiled,
    places: Vec<Place>,
}

impl Placed {
    fn new(driver: &dyn Driver, Step { source, places, .. }: &Step) -> Result<Placed> {
        Ok(Placed { kernel: Compiled::new(driver, source)?, places: places.clone() })
    }

    /// # Safety
    /// As [`Compiled::launch`].
    unsafe fn launch(&self, driver: &dyn Driver, io: &Io) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { self.kernel.launch(driver, io, &addresses(io, &self.places)) }
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.kernel.words) + size_of_val(&*self.places)
    }
}

/// A call of a library, and the kernels before and after it.
struct Called {
    call: Arc<dyn Call>,
    places: Vec<Place>,
    around: [Vec<Placed>; 2],
    /// The kernel for tensors that are not aligned as the library wants them, once it is needed.
    otherwise: (Step, OnceLock<Placed>),
}

impl Called {
    fn new(driver: &dyn Driver, call: Arc<dyn Call>, step: &Step) -> Result<Called> {
        let Library { places, around, .. } = &**step.library.as_ref().expect("of a library");
        let placed = |steps: &Vec<Step>| {
            steps.iter().map(|step| Placed::new(driver, step)).collect::<Result<_>>()
        };
        let around = [placed(&around[0])?, placed(&around[1])?];
        let otherwise = (Step { library: None, ..step.clone() }, OnceLock::new());
        Ok(Called { call, places: places.clone(), around, otherwise })
    }

    /// # Safety
    /// As [`Compiled::launch`]; `scratch` is where the library's own memory begins.
    unsafe fn put(&self, driver: &dyn Driver, io: &Io, scratch: usize) -> Result<()> {
        let tensors = addresses(io, &self.places);
        let [before, after] = &self.around;
        let scratch = address(io, Place::Scratch(scratch));
        // SAFETY: by the caller's promise.
        unsafe {
            if !tensors.iter().all(|at| at.is_multiple_of(self.call.alignment())) {
                return self.otherwise(driver)?.launch(driver, io);
            }
            before.iter().try_for_each(|kernel| kernel.launch(driver, io))?;
            self.call.put(io.stream(), &tensors, scratch)?;
            after.iter().try_for_each(|kernel| kernel.launch(driver, io))
        }
    }

    fn otherwise(&self, driver: &dyn Driver) -> Result<&Placed> {
        let (step, compiled) = &self.otherwise;
        if let Some(placed) = compiled.get() {
            return Ok(placed);
        }
        let placed = Placed::new(driver, step)?;
        Ok(compiled.get_or_init(|| placed))
    }
}

/// What libraries answer to demands.
type Calls = HashMap<Demand, Option<Arc<dyn Call>>>;

/// A kernel, or what a library computes.
enum Work {
    Kernel(Placed),
    Called(Box<Called>),
}

impl Work {
    /// What a step is on this GPU; `calls` are those that libraries have prepared.
    fn new(driver: &dyn Driver, step: &Step, calls: &mut Calls) -> Result<Work> {
        let mut prepared = |library: &Library| {
            let call = calls.entry(library.demand.clone());
            call.or_insert_with(|| driver.library(&library.demand)).clone()
        };
        match step.library.as_deref().and_then(&mut prepared) {
            Some(call) => Ok(Work::Called(Box::new(Called::new(driver, call, step)?))),
            None => Ok(Work::Kernel(Placed::new(driver, step)?)),
        }
    }

    /// Bytes of scratch memory that a library needs.
    fn scratch(&self) -> usize {
        match self {
            Work::Kernel(_) => 0,
            Work::Called(called) => called.call.scratch(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Work::Kernel(placed) => placed.bytes(),
            Work::Called(called) => {
                size_of_val(&**called)
                    + called.around.iter().flatten().map(Placed::bytes).sum::<usize>()
            }
        }
    }
}

fn addresses(io: &Io, places: &[Place]) -> SmallVec<[u64; 16]> {
    places.iter().map(|&place| address(io, place)).collect()
}

fn address(io: &Io, place: Place) -> u64 {
    let start = match place {
        Place::Input(i) => io.input::<u8>(i),
        Place::Part(i, offset) => io.input::<u8>(i).wrapping_offset(offset),
        Place::Output(o, offset) => io.output::<u8>(o).wrapping_offset(offset).cast_const(),
        Place::Scratch(offset) => io.scratch::<u8>().wrapping_add(offset).cast_const(),
    };
    start.expose_provenance() as u64
}

/// A compiled program.
pub struct Runner {
    driver: &'static dyn Driver,
    steps: Vec<Work>,
    /// Bytes of the program's scratch memory, and of what libraries need behind it.
    scratch: [usize; 2],
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
        let mut calls = Calls::new();
        let steps = program.steps.iter().map(|step| Work::new(driver, step, &mut calls));
        let steps: Vec<Work> = steps.collect::<Result<_>>()?;
        let of_libraries = steps.iter().map(Work::scratch).max().unwrap_or(0);
        let checks = program.checks.into_iter().map(|check| Checking::new(driver, check));
        let checking = checks.collect::<Result<_>>()?;
        Ok(Runner { driver, steps, scratch: [program.scratch, of_libraries], checking })
    }
}

impl Checking {
    fn new(driver: &dyn Driver, check: Arc<Check>) -> Result<Checking> {
        let compiled = Compiled::new(driver, &check.source)?;
        let refused = || Error::device("cuda", "no memory is left");
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
        self.scratch.iter().sum()
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.steps.iter().map(Work::bytes).sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        self.put(io)
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.checking.iter().try_for_each(|checking| checking.holds(self.driver, io))
    }

    fn waits(&self) -> bool {
        !self.checking.is_empty()
    }

    fn put(&self, io: &Io) -> Result<()> {
        self.steps.iter().try_for_each(|work| {
            // SAFETY: the places are those that the texts, and the calls, were made for.
            unsafe {
                match work {
                    Work::Kernel(kernel) => kernel.launch(self.driver, io),
                    Work::Called(called) => called.put(self.driver, io, self.scratch[0]),
                }
            }
        })
    }
}

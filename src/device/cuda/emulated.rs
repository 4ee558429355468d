//! A driver without a GPU, for tests: kernels are compiled for the host, and a stream runs what was
//! put on it only when somebody waits for it.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use super::compiler::Compiler;
use super::{
    CUBLASLT, CUDNN, Call, Captured, Code, Demand, Driver, Function, Launch, Properties, assembler,
    refusal,
};
use crate::device::{Stream, pages};
use crate::error::{Result, guarded, locked};

/// What CUDA C needs on the host.
const HEADER: &str = include_str!("emulated.h");
/// What runs its threads.
const RUNTIME: &str = include_str!("emulated.cpp");
/// What memory holds before it is written.
const POISON: u8 = 0xa5;
/// What a library asks for its own use.
const SCRATCH: usize = 100;
/// The memory of the GPU.
const BYTES: usize = 1 << 30;
/// Its number, which no GPU of a machine has.
pub const ORDINAL: i32 = 64;
/// The oldest architecture that kernels are compiled for.
const ARCHITECTURE: &str = "compute_75";
/// Its stream; any but the host's.
const STREAM: Stream = Stream(7);
/// The stream on which work is captured.
const CAPTURING: Stream = Stream(8);

/// The function that a compiled kernel offers: blocks, threads, the argument.
type Entry = unsafe extern "C" fn(u32, u32, *const u64);

/// A GPU that is not there.
#[derive(Default)]
pub struct Emulated {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The compiled kernels, by what their texts hash to.
    functions: HashMap<u64, Function>,
    /// What is on the stream.
    work: Vec<Work>,
    /// What has been captured so far, and by which thread.
    capturing: Option<(ThreadId, Vec<Work>)>,
    /// What was captured, by its number.
    captured: HashMap<usize, Vec<Work>>,
    captures: usize,
    /// The sizes of what is allocated and backed, by address.
    taken: HashMap<usize, usize>,
}

/// What a stream runs: a kernel, or something that a library computes.
#[derive(Clone)]
enum Work {
    Kernel(Function, Launch, Vec<u64>),
    Call(Arc<dyn Fn() + Send + Sync>),
}

/// The emulated GPU of this process.
pub fn driver() -> &'static Emulated {
    static DRIVER: LazyLock<Emulated> = LazyLock::new(Emulated::default);
    &DRIVER
}

impl Emulated {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Runs what is on the stream.
    fn flush(&self, state: &mut State) {
        let is_capturing =
            state.capturing.as_ref().is_some_and(|(by, _)| *by == thread::current().id());
        assert!(!is_capturing, "only kernels and calls of libraries are captured");
        for work in state.work.drain(..) {
            match work {
                // SAFETY: the address is that of such a function, and whoever launched it vouches
                // for the argument.
                Work::Kernel(function, launch, argument) => unsafe {
                    let entry: Entry = std::mem::transmute(function.0);
                    entry(launch.blocks, launch.threads, argument.as_ptr());
                },
                Work::Call(call) => call(),
            }
        }
    }

    /// Puts work on a stream.
    fn put(&self, stream: Stream, work: Work) {
        let state = &mut *self.state();
        match (stream, &mut state.capturing) {
            (STREAM, _) => state.work.push(work),
            (CAPTURING, Some((_, captured))) => captured.push(work),
            _ => panic!("work on another stream: {stream:?}"),
        }
    }
}

impl State {
    fn take(&mut self, start: Option<NonNull<u8>>, bytes: usize) -> Option<NonNull<u8>> {
        let start = start?;
        self.taken.insert(start.addr().get(), bytes);
        // SAFETY: the memory is new.
        unsafe { start.write_bytes(POISON, bytes) };
        Some(start)
    }

    fn left(&self) -> usize {
        BYTES.saturating_sub(self.taken.values().sum())
    }
}

impl Driver for Emulated {
    fn compile(&self, code: Code) -> Result<Function> {
        let mut hasher = DefaultHasher::new();
        (code.text, code.has_barriers, code.prelude, HEADER, RUNTIME).hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(function) = self.state().functions.get(&hash) {
            return Ok(*function);
        }
        if let Some(compiler) = compiler_for_gpus() {
            assembler::check(code.name, &compiler.ptx(code, ARCHITECTURE)?)?;
        }
        let function = open(&built(code, hash)?)?;
        self.state().functions.insert(hash, function);
        Ok(function)
    }

    unsafe fn launch(&self, function: Function, launch: Launch, argument: &[u64]) -> Result<()> {
        self.put(launch.stream, Work::Kernel(function, launch, argument.to_vec()));
        Ok(())
    }

    fn library(&self, demand: &Demand) -> Option<Arc<dyn Call>> {
        Some(Arc::new(Computed(demand.clone())))
    }

    fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Captured> {
        self.state().capturing = Some((thread::current().id(), Vec::new()));
        let done = guarded("capture", || work(CAPTURING));
        let state = &mut *self.state();
        let (_, captured) = state.capturing.take().expect("one capture at a time");
        done?;
        state.captures += 1;
        state.captured.insert(state.captures, captured);
        Ok(Captured(state.captures))
    }

    unsafe fn replay(&self, captured: Captured) -> Result<()> {
        let state = &mut *self.state();
        state.work.extend_from_slice(&state.captured[&captured.0]);
        Ok(())
    }

    unsafe fn release(&self, captured: Captured) {
        self.state().captured.remove(&captured.0).expect("what was captured");
    }

    fn wait(&self, _stream: Stream) -> Result<()> {
        self.flush(&mut self.state());
        Ok(())
    }

    fn stream(&self) -> Stream {
        STREAM
    }

    fn properties(&self) -> Properties {
        let name = "emulated".into();
        Properties { name, capability: (7, 5), processors: 1, libraries: vec![CUBLASLT, CUDNN] }
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let mut state = self.state();
        if bytes > state.left() {
            return None;
        }
        let layout = std::alloc::Layout::from_size_align(bytes, 256).ok()?;
        // SAFETY: nobody allocates nothing.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) });
        state.take(start, bytes)
    }

    unsafe fn free(&self, start: NonNull<u8>) {
        let mut state = self.state();
        self.flush(&mut state);
        let bytes = state.taken.remove(&start.addr().get()).expect("memory that is allocated");
        // SAFETY: it was allocated with this layout.
        unsafe {
            start.write_bytes(POISON, bytes);
            let layout = std::alloc::Layout::from_size_align_unchecked(bytes, 256);
            std::alloc::dealloc(start.as_ptr(), layout);
        }
    }

    unsafe fn fill(&self, start: NonNull<u8>, value: u8, bytes: usize) {
        self.flush(&mut self.state());
        // SAFETY: guaranteed by the caller.
        unsafe { start.write_bytes(value, bytes) }
    }

    unsafe fn download(&self, from: NonNull<u8>, to: &mut [u8]) -> Result<()> {
        self.flush(&mut self.state());
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from.as_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()> {
        self.flush(&mut self.state());
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn reserve(&self, bytes: usize) -> Option<NonNull<u8>> {
        pages::reserve(bytes)
    }

    unsafe fn unreserve(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { pages::unreserve(start, bytes) }
    }

    unsafe fn map(&self, granule: NonNull<u8>) -> bool {
        let mut state = self.state();
        let bytes = self.granule();
        // SAFETY: guaranteed by the caller.
        let granted = bytes <= state.left() && unsafe { pages::commit(granule, bytes) };
        granted && state.take(Some(granule), bytes).is_some()
    }

    unsafe fn unmap(&self, granule: NonNull<u8>) {
        let mut state = self.state();
        self.flush(&mut state);
        state.taken.remove(&granule.addr().get());
        // SAFETY: guaranteed by the caller.
        unsafe { pages::decommit(granule, self.granule()) }
    }

    fn granule(&self) -> usize {
        pages::LARGE_PAGE
    }

    fn memory(&self) -> (usize, usize) {
        (self.state().left(), BYTES)
    }
}

/// What a library computes, on the host.
struct Computed(Demand);

impl Call for Computed {
    fn scratch(&self) -> usize {
        SCRATCH
    }

    fn alignment(&self) -> u64 {
        if matches!(self.0, Demand::Product(_)) { 1 } else { 16 }
    }

    unsafe fn put(&self, stream: Stream, tensors: &[u64], scratch: u64) -> Result<()> {
        let (demand, tensors) = (self.0.clone(), tensors.to_vec());
        // SAFETY: the scratch memory and the tensors are the caller's.
        let call = move || unsafe {
            let scratch = std::ptr::with_exposed_provenance_mut::<u8>(scratch as usize);
            scratch.write_bytes(POISON, SCRATCH);
            match &demand {
                Demand::Product(product) => product.computed(&tensors),
                Demand::Convolution(convolution) => convolution.computed(&tensors),
            }
        };
        driver().put(stream, Work::Call(Arc::new(call)));
        Ok(())
    }
}

/// CUDA's compiler, if `SINGA_RS_NVRTC` names its library: it compiles every kernel, too.
fn compiler_for_gpus() -> Option<&'static Compiler> {
    static COMPILER: LazyLock<Option<Compiler>> = LazyLock::new(|| {
        let path = std::env::var_os("SINGA_RS_NVRTC")?;
        Some(Compiler::open(path.as_ref()).expect("the library that the environment names"))
    });
    COMPILER.as_ref()
}

/// Opens a compiled kernel for good.
fn open(path: &Path) -> Result<Function> {
    let failed = |e: libloading::Error| refusal(e.to_string());
    // SAFETY: it was compiled from our own text.
    let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the text ends with a function of this name and type.
    let entry: libloading::Symbol<Entry> = unsafe { library.get(b"launch") }.map_err(failed)?;
    Ok(Function(*entry as usize))
}

/// The file of a compiled kernel. Files are shared by processes: each is written under a name of its
/// own, and renamed when it is whole.
fn built(code: Code, hash: u64) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("singa_rs-emulated-{}", std::env::consts::ARCH));
    let failed = |e: std::io::Error| refusal(e.to_string());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let library = folder.join(format!("{hash:016x}.so"));
    if library.exists() {
        return Ok(library);
    }
    let prelude = HEADER.to_string() + code.prelude;
    let [header, _] = once(&folder, &prelude, ["h", "h.gch"], &["-x", "c++-header"])?;
    let with_functions = ["-O2", "-shared", "-Wl,--no-as-needed", "-lm"];
    let [_, runtime] = once(&folder, RUNTIME, ["cpp", "so"], &with_functions)?;
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Relaxed);
    let own = folder.join(format!("{hash:016x}-{}-{count}.cpp", std::process::id()));
    let Code { name, text, has_barriers, .. } = code;
    let entry = format!(
        "extern \"C\" void launch(unsigned blocks, unsigned threads, const void *g) {{\n    \
         auto body = [](const void *g) {{ {name}(*(const Arguments *)g); }};\n    \
         run_grid(blocks, threads, {has_barriers}, body, g);\n}}\n"
    );
    std::fs::write(&own, format!("{text}\n{entry}")).map_err(failed)?;
    let made = own.with_extension("so");
    // The libraries that the runtime is linked to serve kernels, too: linking them takes a while.
    let form = ["-shared", "-nostdlib", "-include"].map(OsStr::new);
    run(compiler().args(form).arg(header).arg(&own).arg(runtime).arg("-o").arg(&made))?;
    std::fs::rename(made, &library).map_err(failed)?;
    std::fs::remove_file(own).map_err(failed)?;
    Ok(library)
}

/// A text that all kernels share, compiled once under its hash by a compiler with `form`: the file
/// of the text, and what is made of it.
fn once(folder: &Path, text: &str, ends: [&str; 2], form: &[&str]) -> Result<[PathBuf; 2]> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = locked(&TURN);
    let failed = |e: std::io::Error| refusal(e.to_string());
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let (hash, id) = (hasher.finish(), std::process::id());
    let [source, made] = ends.map(|end| folder.join(format!("{hash:016x}.{end}")));
    if !made.exists() {
        let [own, new] = ends.map(|end| folder.join(format!("{hash:016x}.{id}.{end}")));
        std::fs::write(&own, text).map_err(failed)?;
        run(compiler().args(form).arg(&own).arg("-o").arg(&new))?;
        std::fs::rename(own, &source).map_err(failed)?;
        std::fs::rename(new, &made).map_err(failed)?;
    }
    Ok([source, made])
}

/// Products and sums are not contracted, as on a GPU: fused kernels then give the same bits. Kernels
/// are many and run briefly, so that what counts is how fast they are compiled.
fn compiler() -> Command {
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    command.args(["-pipe", "-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-fwrapv", "-w"]);
    command.args(["-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables"]);
    command
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|e| refusal(format!("{command:?}: {e}")))?;
    let message = || refusal(String::from_utf8_lossy(&output.stderr).into_owned());
    crate::ensure!(output.status.success(), message());
    Ok(())
}

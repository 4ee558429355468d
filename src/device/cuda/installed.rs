//! A GPU that is there: CUDA's driver, opened at run time.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::calls::Within;
use super::capture::{self, Capturing};
use super::compiler::{self, Compiler};
use super::convolutions::Convolutions;
use super::files::Files;
use super::products::Products;
use super::trial;
use super::{
    CUBLASLT, CUDNN, Call, Captured, Code, Demand, Driver, Function, Launch, Properties, refusal,
};
use crate::device::{Stream, pages};
use crate::error::{Result, locked};

/// The most bytes that a kernel's argument may take.
const ARGUMENT: usize = 4096;

/// A GPU's context, with one stream.
pub struct Installed {
    ordinal: c_int,
    context: sys::CUcontext,
    stream: sys::CUstream,
    capturing: Capturing,
    compiler: Compiler,
    products: Option<Products>,
    convolutions: Option<&'static Convolutions>,
    files: Files,
    properties: Properties,
    granule: usize,
    /// The compiled kernels, by their texts.
    functions: Mutex<HashMap<String, Function>>,
}

// SAFETY: CUDA's driver may be called from any thread; each call here first makes the context that
// of its thread.
unsafe impl Send for Installed {}
// SAFETY: as above.
unsafe impl Sync for Installed {}

/// How many GPUs the driver finds.
///
/// # Errors
/// [`crate::Error::Device`] where there is no driver, or it refuses.
pub fn count() -> Result<usize> {
    static STARTED: OnceLock<std::result::Result<usize, String>> = OnceLock::new();
    let start = || {
        // SAFETY: the library of that name is CUDA's driver.
        if !unsafe { sys::is_culib_present() } {
            return Err("no driver of NVIDIA is installed (libcuda.so)".to_string());
        }
        let found = result::init().and_then(|()| result::device::get_count());
        found.map(|n| n as usize).map_err(|e| named("cuInit", e))
    };
    STARTED.get_or_init(start).clone().map_err(refusal)
}

impl Installed {
    /// The GPU of a number.
    ///
    /// # Errors
    /// [`crate::Error::Device`], which says what is missing.
    pub fn new(ordinal: usize) -> Result<Installed> {
        let count = count()?;
        let lacks = || refusal(format!("got GPU {ordinal}, but there are {count}"));
        crate::ensure!(ordinal < count, lacks());
        let compiler = compiler::find()?;
        let ordinal = ordinal as c_int;
        let device = done("cuDeviceGet", result::device::get(ordinal))?;
        // SAFETY: the device exists; the context is never released.
        let context = unsafe {
            let context = done("cuDevicePrimaryCtxRetain", result::primary_ctx::retain(device))?;
            done("cuCtxSetCurrent", result::ctx::set_current(context))?;
            context
        };
        let kind = result::stream::StreamKind::NonBlocking;
        let stream = done("cuStreamCreate", result::stream::create(kind))?;
        let (properties, granule) = (properties(device)?, granule(ordinal)?);
        let mut made = Installed {
            ordinal,
            context,
            stream,
            capturing: Capturing::new()?,
            files: Files::new(&properties.architecture(), compiler.version()),
            compiler,
            products: Products::find()?,
            convolutions: Convolutions::find()?,
            properties,
            granule,
            functions: Mutex::default(),
        };
        made.products = made.products.filter(|_| trial::passes(&made, &trial::product()));
        made.convolutions =
            made.convolutions.filter(|_| trial::passes(&made, &trial::convolution()));
        let used = [(CUBLASLT, made.products.is_some()), (CUDNN, made.convolutions.is_some())];
        let used = used.into_iter().filter_map(|(name, is_used)| is_used.then_some(name));
        made.properties.libraries = used.collect();
        Ok(made)
    }

    /// Makes the context that of the calling thread, which another library may have changed.
    fn enter(&self) -> Result<()> {
        enter(self.context)
    }

    /// The same where nothing can be answered: what follows fails by itself.
    fn enter_or_log(&self) {
        self.enter().unwrap_or_else(|error| log::error!("{error}"));
    }

    fn synchronise(&self) -> Result<()> {
        // SAFETY: the stream is this one's.
        done("cuStreamSynchronize", unsafe { result::stream::synchronize(self.stream) })
    }

    /// Loads a compiled kernel for good.
    fn load(&self, name: &str, image: &[u8]) -> Result<Function> {
        let name = CString::new(name).expect("a name of our own");
        // SAFETY: the image comes from the compiler; the module is never unloaded.
        unsafe {
            let loaded = result::module::load_data(image.as_ptr().cast::<c_void>());
            let module = done("cuModuleLoadData", loaded)?;
            let function = done("cuModuleGetFunction", result::module::get_function(module, name))?;
            Ok(Function(function.expose_provenance()))
        }
    }
}

/// Makes a context that of the calling thread.
pub(super) fn enter(context: sys::CUcontext) -> Result<()> {
    // SAFETY: contexts live as long as the process.
    done("cuCtxSetCurrent", unsafe { result::ctx::set_current(context) })
}

impl Driver for Installed {
    fn compile(&self, code: Code) -> Result<Function> {
        self.enter()?;
        let mut functions = locked(&self.functions);
        let text = self.compiler.text(code);
        if let Some(&function) = functions.get(&text) {
            return Ok(function);
        }
        let compile = || self.compiler.cubin(code, &self.properties.architecture());
        let image = self.files.get(&text, compile)?;
        let function = self.load(code.name, &image)?;
        functions.insert(text, function);
        Ok(function)
    }

    unsafe fn launch(&self, function: Function, launch: Launch, argument: &[u64]) -> Result<()> {
        let bytes = size_of_val(argument);
        let long = || refusal(format!("a kernel's argument takes {bytes} of {ARGUMENT} bytes"));
        crate::ensure!(bytes <= ARGUMENT, long());
        self.enter()?;
        let function: sys::CUfunction = std::ptr::with_exposed_provenance_mut(function.0);
        let mut parameters = [argument.as_ptr().cast_mut().cast::<c_void>()];
        let (grid, block) = ((launch.blocks, 1, 1), (launch.threads, 1, 1));
        let stream = std::ptr::with_exposed_provenance_mut(launch.stream.0);
        // SAFETY: the driver copies the argument before it returns; the rest is the caller's.
        let launched =
            unsafe { result::launch_kernel(function, grid, block, 0, stream, &mut parameters) };
        done("cuLaunchKernel", launched)
    }

    fn library(&self, demand: &Demand) -> Option<Arc<dyn Call>> {
        self.enter().ok()?;
        let prepared = match demand {
            Demand::Product(product) => self.products?.prepare(product),
            Demand::Convolution(convolution) => self.convolutions?.prepare(convolution),
        };
        let prepared = prepared.inspect_err(|error| log::debug!("{demand:?}: {error}"));
        Some(Arc::new(Within::new(prepared.ok()?, self.context)))
    }

    fn capture(&self, work: &mut dyn FnMut(Stream) -> Result<()>) -> Result<Captured> {
        self.enter()?;
        self.capturing.capture(work)
    }

    unsafe fn replay(&self, captured: Captured) -> Result<()> {
        self.enter()?;
        // SAFETY: guaranteed by the caller.
        unsafe { capture::replay(captured, self.stream) }
    }

    unsafe fn release(&self, captured: Captured) {
        self.enter_or_log();
        self.synchronise().unwrap_or_else(|error| log::error!("{error}"));
        // SAFETY: guaranteed by the caller; nothing of it runs any more.
        unsafe { capture::release(captured) }
    }

    fn wait(&self, _stream: Stream) -> Result<()> {
        self.enter()?;
        self.synchronise()
    }

    fn stream(&self) -> Stream {
        Stream(self.stream.expose_provenance())
    }

    fn properties(&self) -> Properties {
        self.properties.clone()
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.enter().ok()?;
        // SAFETY: the caller writes it before it reads it.
        address(unsafe { result::malloc_sync(bytes) }.ok()?)
    }

    unsafe fn free(&self, start: NonNull<u8>) {
        self.enter_or_log();
        // SAFETY: guaranteed by the caller; the driver waits for all work first.
        log_failure("cuMemFree", unsafe { result::free_sync(of(start)) });
    }

    unsafe fn fill(&self, start: NonNull<u8>, value: u8, bytes: usize) {
        self.enter_or_log();
        // SAFETY: guaranteed by the caller.
        let filled = unsafe { result::memset_d8_async(of(start), value, bytes, self.stream) };
        log_failure("cuMemsetD8Async", filled);
    }

    unsafe fn download(&self, from: NonNull<u8>, to: &mut [u8]) -> Result<()> {
        self.enter()?;
        // SAFETY: guaranteed by the caller; the bytes are there once the stream has done its work.
        let copied = unsafe { result::memcpy_dtoh_async(to, of(from), self.stream) };
        done("cuMemcpyDtoHAsync", copied)?;
        self.synchronise()
    }

    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()> {
        self.enter()?;
        // SAFETY: guaranteed by the caller. From memory that is not pinned, the driver has copied
        // the bytes to memory of its own when it returns.
        let copied = unsafe { result::memcpy_htod_async(of(to), from, self.stream) };
        done("cuMemcpyHtoDAsync", copied)
    }

    fn reserve(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.enter().ok()?;
        let mut start = 0;
        let aligned = self.granule.max(pages::LARGE_PAGE);
        // SAFETY: the driver chooses addresses that are free.
        unsafe { sys::cuMemAddressReserve(&mut start, bytes, aligned, 0, 0) }.result().ok()?;
        address(start)
    }

    unsafe fn unreserve(&self, start: NonNull<u8>, bytes: usize) {
        self.enter_or_log();
        // SAFETY: guaranteed by the caller.
        log_failure("cuMemAddressFree", unsafe {
            sys::cuMemAddressFree(of(start), bytes).result()
        });
    }

    unsafe fn map(&self, granule: NonNull<u8>) -> bool {
        if self.enter().is_err() {
            return false;
        }
        let (at, bytes, of_memory) = (of(granule), self.granule, located(self.ordinal));
        let mut memory = 0;
        // SAFETY: guaranteed by the caller; the memory lives as long as it is mapped.
        unsafe {
            if sys::cuMemCreate(&mut memory, bytes, &of_memory, 0).result().is_err() {
                return false;
            }
            let mapped = sys::cuMemMap(at, bytes, 0, memory, 0).result();
            let released = sys::cuMemRelease(memory).result();
            log_failure("cuMemRelease", released);
            let access = sys::CUmemAccessDesc {
                location: of_memory.location,
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            let opened = || sys::cuMemSetAccess(at, bytes, &access, 1).result();
            match mapped {
                Ok(()) if opened().is_ok() => true,
                Ok(()) => {
                    log_failure("cuMemUnmap", sys::cuMemUnmap(at, bytes).result());
                    false
                }
                Err(_) => false,
            }
        }
    }

    unsafe fn unmap(&self, granule: NonNull<u8>) {
        self.enter_or_log();
        self.synchronise().unwrap_or_else(|error| log::error!("{error}"));
        // SAFETY: guaranteed by the caller; no work is left that uses it.
        log_failure("cuMemUnmap", unsafe { sys::cuMemUnmap(of(granule), self.granule).result() });
    }

    fn granule(&self) -> usize {
        self.granule
    }

    fn memory(&self) -> (usize, usize) {
        let read = self.enter().ok().and_then(|()| result::mem_get_info().ok());
        read.unwrap_or_default()
    }
}

/// What a device is called and can do.
fn properties(device: sys::CUdevice) -> Result<Properties> {
    use sys::CUdevice_attribute as Attribute;
    let name = done("cuDeviceGetName", result::device::get_name(device))?;
    let attribute = |which| {
        // SAFETY: the device exists.
        done("cuDeviceGetAttribute", unsafe { result::device::get_attribute(device, which) })
    };
    Ok(Properties {
        name,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
        ),
        processors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        libraries: Vec::new(),
    })
}

/// Memory on the GPU of a number.
fn located(ordinal: c_int) -> sys::CUmemAllocationProp {
    // SAFETY: zeros are valid everywhere in it.
    let mut memory: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    memory.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    memory.location.id = ordinal;
    memory
}

fn granule(ordinal: c_int) -> Result<usize> {
    use sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED as RECOMMENDED;
    let (mut bytes, memory) = (0, located(ordinal));
    // SAFETY: both structures are valid.
    let got = unsafe { sys::cuMemGetAllocationGranularity(&mut bytes, &memory, RECOMMENDED) };
    done("cuMemGetAllocationGranularity", got.result())?;
    Ok(bytes)
}

fn address(start: sys::CUdeviceptr) -> Option<NonNull<u8>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(start as usize))
}

fn of(start: NonNull<u8>) -> sys::CUdeviceptr {
    start.addr().get() as sys::CUdeviceptr
}

pub(super) fn done<T>(call: &str, result: std::result::Result<T, DriverError>) -> Result<T> {
    result.map_err(|error| refusal(named(call, error)))
}

fn named(call: &str, error: DriverError) -> String {
    let text = |found: std::result::Result<&CStr, DriverError>| {
        found.map_or_else(|_| format!("{:?}", error.0), |text| text.to_string_lossy().into_owned())
    };
    format!("{call}: {} ({})", text(error.error_string()), text(error.error_name()))
}

pub(super) fn log_failure(call: &str, result: std::result::Result<(), DriverError>) {
    if let Err(error) = result {
        log::error!("{}", named(call, error));
    }
}

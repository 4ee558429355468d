//! CUDA's compiler NVRTC, opened at run time.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

use super::Code;
use crate::error::{Error, Result};

/// What only the compiler for a GPU knows.
const DEVICE: &str = include_str!("gpu.cu");

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

/// The functions of the library, which is never closed.
pub struct Compiler {
    create: Create,
    compile: Compile,
    log_size: Size,
    log: Text,
    ptx_size: Size,
    ptx: Text,
    destroy: Destroy,
}

impl Compiler {
    /// Opens the library.
    ///
    /// # Errors
    /// [`Error::Device`] where the file is none or lacks a function.
    pub fn open(path: &Path) -> Result<Compiler> {
        // SAFETY: the user, or the package manager, vouches for the file.
        let library = unsafe { libloading::Library::new(path) }.map_err(|e| refusal(&e))?;
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        // SAFETY: the types are those of NVRTC's functions.
        let made = unsafe {
            (|| {
                Ok::<_, libloading::Error>(Compiler {
                    create: *library.get(b"nvrtcCreateProgram")?,
                    compile: *library.get(b"nvrtcCompileProgram")?,
                    log_size: *library.get(b"nvrtcGetProgramLogSize")?,
                    log: *library.get(b"nvrtcGetProgramLog")?,
                    ptx_size: *library.get(b"nvrtcGetPTXSize")?,
                    ptx: *library.get(b"nvrtcGetPTX")?,
                    destroy: *library.get(b"nvrtcDestroyProgram")?,
                })
            })()
        };
        made.map_err(|e| refusal(&e))
    }

    /// Compiles a kernel for GPUs of an architecture (`compute_80`) and later ones, to PTX. Products
    /// and sums are not contracted, so that fused kernels give the same bits as separate ones.
    ///
    /// # Errors
    /// [`Error::Device`] with what the compiler says.
    pub fn ptx(&self, code: Code, architecture: &str) -> Result<Vec<u8>> {
        let text = [DEVICE, code.prelude, code.text].join("\n");
        let options = [
            format!("--gpu-architecture={architecture}"),
            "--device-as-default-execution-space".into(),
            "--fmad=false".into(),
            "--std=c++17".into(),
        ];
        let [text, name] = [&text, code.name].map(|text| CString::new(text).expect("text"));
        let options = options.map(|option| CString::new(option).expect("text"));
        let options = options.each_ref().map(|option| option.as_ptr());
        let mut program = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: NVRTC's calls in their order; texts end with a zero, and outlive the program.
        unsafe {
            let made = (self.create)(&mut program, text.as_ptr(), name.as_ptr(), 0, none, none);
            crate::ensure!(made == 0, refusal(&format!("NVRTC answers {made}")));
            let done = (self.compile)(program, options.len() as c_int, options.as_ptr());
            let made = match done {
                0 => Ok(read(program, self.ptx_size, self.ptx)),
                _ => {
                    let log = read(program, self.log_size, self.log);
                    Err(refusal(&String::from_utf8_lossy(&log)))
                }
            };
            (self.destroy)(&mut program);
            made
        }
    }
}

/// # Safety
/// The functions are of one library, and the program is one of its own.
unsafe fn read(program: Program, size: Size, text: Text) -> Vec<u8> {
    let mut bytes = 0;
    // SAFETY: by the caller's promise; there is room for as many bytes.
    unsafe {
        size(program, &mut bytes);
        let mut made = vec![0u8; bytes];
        text(program, made.as_mut_ptr().cast());
        made
    }
}

fn refusal(why: &dyn std::fmt::Display) -> Error {
    Error::Device { op: "cuda".into(), message: format!("NVRTC: {why}") }
}

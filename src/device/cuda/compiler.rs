//! CUDA's compiler NVRTC, opened at run time.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

use super::library::{self, Places};
use super::{Code, refusal};
use crate::error::Result;

/// What only the compiler for a GPU knows.
const DEVICE: &str = include_str!("gpu.cu");
const PLACES: Places = Places {
    variable: "SINGA_RS_NVRTC",
    names: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
};

/// Opens the library that the environment names, or else the first that is found.
///
/// # Errors
/// [`crate::Error::Device`], which says how to install one.
pub fn find() -> Result<Compiler> {
    PLACES.find(Compiler::open)?.ok_or_else(|| {
        refusal("CUDA's compiler NVRTC is not installed: pip install 'singa-rs[cuda12]'")
    })
}

type Program = *mut c_void;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
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

/// The functions that answer something about a program: its size, and its bytes.
#[derive(Clone, Copy)]
struct Answer(Size, Text);

/// The functions of the library, which is never closed.
pub struct Compiler {
    version: Version,
    create: Create,
    compile: Compile,
    log: Answer,
    ptx: Answer,
    cubin: Answer,
    destroy: Destroy,
}

impl Compiler {
    /// Opens the library.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the file is none or lacks a function.
    pub fn open(path: &Path) -> Result<Compiler> {
        let open = library::open(path)?;
        // SAFETY: the types are those of NVRTC's functions.
        unsafe {
            let size = |name: &str| library::function::<Size>(open, name);
            let text = |name: &str| library::function::<Text>(open, name);
            let answer = |of: &str| {
                let name = format!("nvrtcGet{of}");
                Ok::<_, crate::Error>(Answer(size(&format!("{name}Size"))?, text(&name)?))
            };
            Ok(Compiler {
                version: library::function(open, "nvrtcVersion")?,
                create: library::function(open, "nvrtcCreateProgram")?,
                compile: library::function(open, "nvrtcCompileProgram")?,
                log: answer("ProgramLog")?,
                ptx: answer("PTX")?,
                cubin: answer("CUBIN")?,
                destroy: library::function(open, "nvrtcDestroyProgram")?,
            })
        }
    }

    /// The version: major, minor.
    pub fn version(&self) -> (i32, i32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are places for a number.
        unsafe { (self.version)(&mut major, &mut minor) };
        (major, minor)
    }

    /// All that the compiler reads of a kernel.
    pub fn text(&self, code: Code) -> String {
        [DEVICE, code.prelude, code.text].join("\n")
    }

    /// Compiles a kernel for GPUs of a virtual architecture (`compute_80`) and later ones.
    ///
    /// # Errors
    /// [`crate::Error::Device`] with what the compiler says.
    pub fn ptx(&self, code: Code, architecture: &str) -> Result<Vec<u8>> {
        self.compiled(code, architecture, self.ptx)
    }

    /// Compiles a kernel for GPUs of one architecture (`sm_90`).
    ///
    /// # Errors
    /// [`crate::Error::Device`] with what the compiler says.
    pub fn cubin(&self, code: Code, architecture: &str) -> Result<Vec<u8>> {
        self.compiled(code, architecture, self.cubin)
    }

    /// Products and sums are not contracted, so that fused kernels give the same bits as separate
    /// ones.
    fn compiled(&self, code: Code, architecture: &str, answer: Answer) -> Result<Vec<u8>> {
        let text = self.text(code);
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
            crate::ensure!(made == 0, failure(&format!("answers {made}")));
            let done = (self.compile)(program, options.len() as c_int, options.as_ptr());
            let made = match done {
                0 => Ok(read(program, answer)),
                _ => Err(failure(&String::from_utf8_lossy(&read(program, self.log)))),
            };
            (self.destroy)(&mut program);
            made
        }
    }
}

/// # Safety
/// The functions are of one library, and the program is one of its own.
unsafe fn read(program: Program, Answer(size, text): Answer) -> Vec<u8> {
    let mut bytes = 0;
    // SAFETY: by the caller's promise; there is room for as many bytes.
    unsafe {
        size(program, &mut bytes);
        let mut made = vec![0u8; bytes];
        text(program, made.as_mut_ptr().cast());
        made
    }
}

fn failure(why: &dyn std::fmt::Display) -> crate::Error {
    refusal(format!("NVRTC: {why}"))
}

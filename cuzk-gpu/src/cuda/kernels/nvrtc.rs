//! NVRTC, NVIDIA's run-time compiler, loaded while the program runs. It needs no device.

use std::{
    error::Error,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    ptr,
};

use libloading::Library;

use super::{
    arch::Arch,
    report::{KernelReport, parse},
    source::KernelModule,
};
use crate::cuda::error::CudaError;

/// The compiler.
#[derive(Debug)]
pub struct Nvrtc {
    calls: Calls,
    version: (i32, i32),
    // Fields drop in order: the library after what was found in it.
    _library: Library,
    _builtins: Option<Library>,
}

/// A module, compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Code for the device.
    pub cubin: Vec<u8>,
    /// What the compiler says of each kernel.
    pub kernels: Vec<KernelReport>,
}

type Program = *mut c_void;
type Status = c_int;
const SUCCESS: Status = 0;

macro_rules! calls {
    ($($field:ident: $symbol:literal ($($arg:ty),*) -> $ret:ty),* $(,)?) => {
        #[derive(Debug)]
        struct Calls {
            $($field: unsafe extern "C" fn($($arg),*) -> $ret),*
        }

        impl Calls {
            fn find(library: &Library) -> Result<Self, String> {
                // SAFETY: the types are those of NVRTC's header, which have not changed since its first version.
                unsafe { Ok(Self { $($field: *library.get($symbol).map_err(|e| e.to_string())?),* }) }
            }
        }
    };
}

calls! {
    version: b"nvrtcVersion\0" (*mut c_int, *mut c_int) -> Status,
    error_string: b"nvrtcGetErrorString\0" (Status) -> *const c_char,
    create: b"nvrtcCreateProgram\0"
        (*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> Status,
    compile: b"nvrtcCompileProgram\0" (Program, c_int, *const *const c_char) -> Status,
    log_size: b"nvrtcGetProgramLogSize\0" (Program, *mut usize) -> Status,
    log: b"nvrtcGetProgramLog\0" (Program, *mut c_char) -> Status,
    cubin_size: b"nvrtcGetCUBINSize\0" (Program, *mut usize) -> Status,
    cubin: b"nvrtcGetCUBIN\0" (Program, *mut c_char) -> Status,
    destroy: b"nvrtcDestroyProgram\0" (*mut Program) -> Status,
}

/// Names the library, or the folder that it is in.
pub const VARIABLE: &str = "CUZK_NVRTC";

/// Options that all modules are compiled with. Contraction of products and sums is off: where a fused operation is
/// wanted the kernels ask for it, and elsewhere it would break exact arithmetic in doubles.
const OPTIONS: [&str; 4] = ["--std=c++17", "--fmad=false", "--device-as-default-execution-space", "--ptxas-options=-v"];

impl Nvrtc {
    /// Loads the compiler: the one that [`VARIABLE`] names, else the loader's, the toolkit's, or that of an active
    /// Python environment (`pip install nvidia-cuda-nvrtc`).
    ///
    /// # Errors
    /// [`CudaError::NoNvrtc`], with what was tried.
    pub fn load() -> Result<Self, CudaError> {
        let candidates = match std::env::var_os(VARIABLE) {
            Some(named) => named_candidates(Path::new(&named)),
            None => usual_candidates(),
        };
        let mut tried = Vec::new();
        for candidate in &candidates {
            match Self::open(candidate) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(error) => tried.push(format!("{}: {error}", candidate.display())),
            }
        }
        Err(CudaError::NoNvrtc(match tried.is_empty() {
            true => format!("{VARIABLE} names no file and no folder with libnvrtc.so in it"),
            false => tried.join("; "),
        }))
    }

    /// Major and minor version.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Compiles a module.
    ///
    /// # Errors
    /// [`CudaError::Compile`], with the compiler's messages.
    pub fn compile(&self, module: &KernelModule, arch: Arch) -> Result<Compiled, CudaError> {
        let fail = |log: String| CudaError::Compile { module: module.name.to_owned(), arch, log };
        let texts = module.texts().map_err(fail)?;
        let c_string = |text: &str| CString::new(text).map_err(|e| fail(e.to_string()));
        let (main, name) = (c_string(texts.main)?, c_string(module.source)?);
        let names = texts.headers.keys().map(|n| c_string(n)).collect::<Result<Vec<_>, _>>()?;
        let headers = texts.headers.values().map(|t| c_string(t)).collect::<Result<Vec<_>, _>>()?;
        let architecture = format!("--gpu-architecture={arch}");
        let options = OPTIONS.iter().chain(module.options).copied().chain([architecture.as_str()]);
        let options = options.map(c_string).collect::<Result<Vec<_>, _>>()?;

        let mut program = OwnedProgram { calls: &self.calls, handle: ptr::null_mut() };
        // SAFETY: all pointers are to zero-terminated strings that outlive the program.
        self.check("nvrtcCreateProgram", unsafe {
            (self.calls.create)(
                &mut program.handle,
                main.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                pointers(&headers).as_ptr(),
                pointers(&names).as_ptr(),
            )
        })
        .map_err(fail)?;
        // SAFETY: the program was made above, and the options outlive the call.
        let result =
            unsafe { (self.calls.compile)(program.handle, options.len() as c_int, pointers(&options).as_ptr()) };
        // SAFETY: these two calls take the program and a pointer to memory of the size that was asked for.
        let log = unsafe { program.bytes(self.calls.log_size, self.calls.log) }.map_err(|e| fail(self.explain(e)))?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
        self.check("nvrtcCompileProgram", result).map_err(|e| fail(format!("{e}\n{log}")))?;
        // SAFETY: as above.
        let cubin =
            unsafe { program.bytes(self.calls.cubin_size, self.calls.cubin) }.map_err(|e| fail(self.explain(e)))?;
        Ok(Compiled { cubin, kernels: parse(&log) })
    }

    fn open(path: &Path) -> Result<Self, String> {
        // NVRTC asks for its built-in functions by name only: they must be there already if no search path leads to them.
        let builtins = path.parent().and_then(|folder| files_named(folder, "libnvrtc-builtins.so").pop());
        // SAFETY: loading NVIDIA's library runs its initializers, which is what using it means.
        let builtins = builtins.and_then(|path| unsafe { Library::new(path) }.ok());
        // SAFETY: as above.
        let library = unsafe { Library::new(path) }.map_err(|e| e.source().map_or(e.to_string(), |s| s.to_string()))?;
        let calls = Calls::find(&library)?;
        let mut version = (0, 0);
        // SAFETY: both pointers are to live integers.
        match unsafe { (calls.version)(&mut version.0, &mut version.1) } {
            SUCCESS => Ok(Self { calls, version, _library: library, _builtins: builtins }),
            status => Err(format!("nvrtcVersion failed with status {status}")),
        }
    }

    fn check(&self, call: &str, status: Status) -> Result<(), String> {
        match status {
            SUCCESS => Ok(()),
            status => Err(format!("{call}: {}", self.explain(status))),
        }
    }

    fn explain(&self, status: Status) -> String {
        // SAFETY: the call returns a constant string for every status.
        unsafe { CStr::from_ptr((self.calls.error_string)(status)) }.to_string_lossy().into_owned()
    }
}

struct OwnedProgram<'a> {
    calls: &'a Calls,
    handle: Program,
}

impl OwnedProgram<'_> {
    /// Asks for a size, then for that many bytes.
    ///
    /// # Safety
    /// `fill` must write as many bytes as `size` says.
    unsafe fn bytes(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        fill: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, Status> {
        let ok = |status| if status == SUCCESS { Ok(()) } else { Err(status) };
        let mut len = 0;
        // SAFETY: the program is alive; the pointers are to live memory, of the size that was asked for.
        unsafe {
            ok(size(self.handle, &mut len))?;
            let mut bytes = vec![0u8; len];
            ok(fill(self.handle, bytes.as_mut_ptr().cast()))?;
            Ok(bytes)
        }
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the program was created and is not used afterwards. A failure leaks memory, no more.
            unsafe { (self.calls.destroy)(&mut self.handle) };
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).collect()
}

fn named_candidates(path: &Path) -> Vec<PathBuf> {
    match path.is_dir() {
        true => files_named(path, "libnvrtc.so").into_iter().rev().collect(),
        false => vec![path.to_owned()],
    }
}

fn usual_candidates() -> Vec<PathBuf> {
    let mut candidates: Vec<PathBuf> = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from).to_vec();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    for toolkit in toolkits.chain([PathBuf::from("/usr/local/cuda")]) {
        candidates.extend(named_candidates(&toolkit.join("lib64")));
    }
    if let Some(environment) = std::env::var_os("VIRTUAL_ENV") {
        for python in files_named(&Path::new(&environment).join("lib"), "python") {
            for package in ["cu13", "cuda_nvrtc"] {
                candidates.extend(named_candidates(&python.join("site-packages/nvidia").join(package).join("lib")));
            }
        }
    }
    candidates.retain(|c| c.components().count() == 1 || c.is_file());
    candidates
}

/// What is in a folder under names that begin with `prefix`, sorted; nothing if it cannot be read. The packages also
/// have an `.alt.` library, built against another C++ runtime, which is not wanted.
fn files_named(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|n| n.starts_with(prefix) && !n.contains(".alt.")))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_the_library_in_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0"] {
            fs::write(folder.path().join(name), "").expect("writable");
        }
        let found = named_candidates(folder.path());
        assert_eq!(found, [folder.path().join("libnvrtc.so.13"), folder.path().join("libnvrtc.so.12")]);
        assert_eq!(files_named(folder.path(), "libnvrtc-builtins.so").len(), 1);
        assert_eq!(files_named(Path::new("/nonexistent"), "x"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_file_that_is_no_library_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        assert!(Nvrtc::open(file.path()).is_err());
    }
}

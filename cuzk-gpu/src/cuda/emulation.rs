//! Kernels compiled for the host, where tests run them thread by thread.

use std::{path::Path, process::Command, sync::LazyLock};

use libloading::{Library, Symbol};

static LIBRARY: LazyLock<Option<Library>> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/host_grid.cpp");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("grid.so");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let arguments = ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wno-unused-function", "-o"];
    match Command::new(&compiler).args(arguments).args([&path, &source]).output() {
        Ok(compiled) => assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr)),
        Err(error) => {
            eprintln!("kernels are not run on the host: no {compiler}: {error}");
            return None;
        }
    }
    // SAFETY: the library has no initializers but of empty containers.
    Some(unsafe { Library::new(&path) }.expect("just compiled"))
});

/// Held while kernels run: the threads that they are run on are one set.
static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Calls `body` with the library, alone. Without a compiler it says so and does nothing.
pub(super) fn with_library(body: impl FnOnce(&'static Library)) {
    let Some(library) = &*LIBRARY else { return };
    let _alone = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    body(library);
}

/// A function of `kernels/host_grid.cpp`.
///
/// # Safety
/// It must have this type.
pub(super) unsafe fn function<T>(library: &'static Library, name: &str) -> Symbol<'static, T> {
    // SAFETY: the caller knows the type.
    unsafe { library.get(format!("{name}\0").as_bytes()) }.expect("it is in host_grid.cpp")
}

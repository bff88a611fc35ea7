//! Kernels compiled for the host, where tests run them thread by thread.

use std::{path::Path, process::Command, sync::LazyLock};

use libloading::{Library, Symbol};

/// The kernels with each set of options that some test wants.
static WHOLE: LazyLock<Option<Library>> = LazyLock::new(|| compile(&[]));
static TWO_LEVELS: LazyLock<Option<Library>> = LazyLock::new(|| compile(&["-DNTT_TWO_LEVELS"]));

fn compile(options: &[&str]) -> Option<Library> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/host_grid.cpp");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("grid.so");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let arguments = ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wno-unused-function", "-o"];
    match Command::new(&compiler).args(options).args(arguments).args([&path, &source]).output() {
        Ok(compiled) => assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr)),
        Err(error) => {
            eprintln!("kernels are not run on the host: no {compiler}: {error}");
            return None;
        }
    }
    // SAFETY: the library has no initializers but of empty containers.
    Some(unsafe { Library::new(&path) }.expect("just compiled"))
}

/// Held while kernels run: the threads that they are run on are one set.
static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Calls `body` with the library, alone. Without a compiler it says so and does nothing.
pub(super) fn with_library(body: impl FnOnce(&'static Library)) {
    run(&WHOLE, body);
}

/// As [`with_library`], of the kernels of transforms for tables in two levels.
pub(super) fn with_two_levels(body: impl FnOnce(&'static Library)) {
    run(&TWO_LEVELS, body);
}

fn run(library: &'static Option<Library>, body: impl FnOnce(&'static Library)) {
    let Some(library) = library else { return };
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

//! The same headers, compiled for the host.

use std::{path::Path, process::Command};

use libloading::Library;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::ops::OPS;

type Run = unsafe extern "C" fn(*const u32, *const u32, *mut u32, u32);

/// Words with the alignment that kernels read with.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Quad([u32; 4]);

fn quads(words: &[u32]) -> Vec<Quad> {
    words.chunks(4).map(|c| Quad(std::array::from_fn(|i| c.get(i).copied().unwrap_or(0)))).collect()
}

#[test]
fn kernels_arithmetic_on_the_host() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/host_mirror.cpp");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = folder.path().join("mirror.so");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let compiled = Command::new(&compiler)
        .args(["-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-Wno-unused-function", "-o"])
        .args([&library, &source])
        .output();
    let compiled = match compiled {
        Ok(output) => output,
        Err(error) => return eprintln!("kernels' arithmetic is not run on the host: no {compiler}: {error}"),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // SAFETY: the library has no initializers but a thread-local zero.
    let library = unsafe { Library::new(&library) }.expect("just compiled");

    let seed = rand::thread_rng().r#gen();
    for op in OPS {
        // SAFETY: that is the type of every function in host_mirror.cpp.
        let run = unsafe { library.get::<Run>(format!("check_{}\0", op.name).as_bytes()) }.expect(op.name);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let result = op.check(&mut rng, 400, |a, b| {
            let count = a.len() / op.words[0];
            let mut out = quads(&vec![0xdbdb_dbdb; count * op.words[2]]);
            let (a, b) = (quads(a), quads(b));
            // SAFETY: the function reads and writes `count` items of the sizes that `Op::words` has.
            unsafe { run(a.as_ptr().cast(), b.as_ptr().cast(), out.as_mut_ptr().cast(), count as u32) };
            Ok(out.iter().flat_map(|quad| quad.0).take(count * op.words[2]).collect())
        });
        result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

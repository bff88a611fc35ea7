//! The kernels, compiled for the host and run there thread by thread.

use libloading::{Library, Symbol};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    BadPoint, Checks,
    checks::compare,
    samples::{Sampled, samples},
};
use crate::{
    arith::{G1, G2},
    cuda::{
        emulation::{function, with_library},
        msm::DeviceCurve,
    },
};

/// Sixteen bytes, with the alignment that kernels read with.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Part([u8; 16]);

type Run = unsafe extern "C" fn(*const Part, *mut Part, u32, u32, *mut u64);

#[test]
fn kernels_convert_points_on_the_host() {
    with_library(|library| {
        let seed = rand::thread_rng().r#gen();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        lists::<G1>(library, &mut rng).unwrap_or_else(|error| panic!("seed {seed}: G1, {error}"));
        lists::<G2>(library, &mut rng).unwrap_or_else(|error| panic!("seed {seed}: G2, {error}"));
    });
}

fn lists<C: Sampled>(library: &'static Library, rng: &mut ChaCha8Rng) -> Result<(), String> {
    // SAFETY: that is its type in host_grid.cpp.
    let run: Symbol<Run> = unsafe { function(library, &format!("grid_points_{}", <C as DeviceCurve>::SUFFIX)) };
    let whole = Checks { subgroup: true, ..Checks::FILE };
    // One by one, then together.
    let lengths = [1; 60].into_iter().chain([70]);
    for (len, checks) in lengths.flat_map(|len| [(len, Checks::FILE), (len, whole)]) {
        let samples = samples::<C>(rng, len, if len == 1 { 1 } else { 20 });
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.bytes.clone()).collect();
        let mut points: Vec<Part> = bytes.chunks_exact(16).map(|c| Part(c.try_into().expect("16 bytes"))).collect();
        let mut first_fault = u64::MAX;
        let data = points.as_mut_ptr();
        // SAFETY: `points` has `len` points, and may be read and written at once.
        unsafe { run(data, data, len as u32, u32::from(checks.subgroup), &mut first_fault) };
        let converted: Vec<u8> = points.iter().flat_map(|part| part.0).collect();
        compare::<C>(&samples, 0, BadPoint::decode(first_fault), &converted, |s| s.found_by(checks))?;
    }
    Ok(())
}

//! How fast parameters are loaded: a made-up file in memory, so that no disk is measured.

use std::{
    env,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use blstrs::G1Projective;
use group::{Curve as _, Group as _};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::{Buffers, List, LoadError, load};
use crate::{
    cuda::{
        gpu::Gpu,
        harness::{Bench, Measurement},
        memory::{DeviceBuffer, PinnedBuffer},
        plan::LOADING_BYTES,
        points::Checks,
    },
    srs::{G1_BYTES, Section, Watch},
};

/// The benches.
pub const BENCHES: &[Bench] = &[Bench { name: "load", run: rates }];

/// Bytes of the file, and of the part of it that passes through the device into page-locked memory.
const BYTES: u64 = 8_000_000_000 / G1_BYTES * G1_BYTES;
const PASSING_BYTES: u64 = BYTES / 4 / G1_BYTES * G1_BYTES;

/// Where files are in memory.
const IN_MEMORY: &str = "/dev/shm";

fn rates(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let text = |error: LoadError| error.to_string();
    // A file that was just written is in the page cache, if there is no room in a file system in memory.
    let in_memory = file(Path::new(IN_MEMORY), rng).or_else(|_| file(&env::temp_dir(), rng));
    let (folder, path) = in_memory.map_err(|error| format!("cannot write a file of {BYTES} bytes: {error}"))?;
    let section = |bytes| Section { name: "h", offset: 0, points: bytes / G1_BYTES, point_bytes: G1_BYTES };
    let row = |kernel: &str, bytes: u64, seconds| Measurement {
        kernel: kernel.to_owned(),
        size: format!("{:.1} GB in memory", bytes as f64 / 1e9),
        seconds,
        work: bytes as f64,
        unit: "B",
        // The bus, as the bench of copies finds it.
        ceiling: Some(55e9),
        goal: None,
    };
    let mut rows = Vec::new();
    let mut run = || {
        let mut buffers = Buffers::new(gpu, LOADING_BYTES)?;
        let resident = DeviceBuffer::<u8>::new(gpu, BYTES as usize, "a bench's points")?;
        let none = resident.all().range(..0)?;
        for readers in [1, 4, 8, 16] {
            let mut lists = [List { section: section(BYTES), resident: resident.all(), pinned: None }];
            let begin = Instant::now();
            load(&path, &mut lists, &mut buffers, readers, Checks::FILE, &Watch::nobody())?;
            rows.push(row(&format!("load to the device, {readers} threads"), BYTES, begin.elapsed().as_secs_f64()));
        }
        let mut pinned = PinnedBuffer::<u8>::new(gpu, PASSING_BYTES as usize, "a bench's points")?;
        let mut lists = [List { section: section(PASSING_BYTES), resident: none, pinned: Some(&mut pinned) }];
        let begin = Instant::now();
        load(&path, &mut lists, &mut buffers, 8, Checks::FILE, &Watch::nobody())?;
        rows.push(row("load to page-locked memory, 8 threads", PASSING_BYTES, begin.elapsed().as_secs_f64()));
        Ok(())
    };
    run().map_err(text)?;
    drop(folder);
    Ok(rows)
}

/// A file in a folder of its own below `parent`.
fn file(parent: &Path, rng: &mut ChaCha8Rng) -> io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir_in(parent)?;
    let path = folder.path().join("points");
    write(&path, rng)?;
    Ok((folder, path))
}

/// Random points, some thousands of them again and again.
fn write(path: &Path, rng: &mut ChaCha8Rng) -> io::Result<()> {
    let (mut sum, step) = (G1Projective::random(&mut *rng), G1Projective::random(&mut *rng));
    let mut block = Vec::with_capacity(4096 * G1_BYTES as usize);
    for _ in 0..4096 {
        block.extend_from_slice(&sum.to_affine().to_uncompressed());
        sum += step;
    }
    let mut file = File::create(path)?;
    let mut left = BYTES as usize;
    while left > 0 {
        let part = left.min(block.len());
        file.write_all(&block[..part])?;
        left -= part;
    }
    Ok(())
}

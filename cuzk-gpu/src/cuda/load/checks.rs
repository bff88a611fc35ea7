//! Checks of loads, with small files of random points.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    ops::Range,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::{Curve as _, Group as _};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::{Buffers, List, LoadError, load};
use crate::{
    arith::{Backend, G1, G2, Table},
    cuda::{
        error::CudaError,
        gpu::Gpu,
        harness::Check,
        memory::{DeviceBuffer, PinnedBuffer},
        points::Checks,
        stream::Stream,
    },
    srs::{G1_BYTES, G2_BYTES, Section, SrsFault, Watch},
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "load/lists", run: lists },
    Check { name: "load/a bad point", run: bad_point },
    Check { name: "load/cancelled", run: cancelled },
    Check { name: "load/misfits", run: misfits },
];

/// A file with a list of each group, and what its points are in the kernels' form.
struct Sample {
    folder: TempDir,
    sections: [Section; 2],
    converted: [Vec<u8>; 2],
}

/// A list's place.
struct Place {
    resident: DeviceBuffer<u8>,
    pinned: PinnedBuffer<u8>,
}

impl Sample {
    /// Several chunks of each list.
    fn new(rng: &mut ChaCha8Rng) -> std::io::Result<Self> {
        let g1: Vec<G1Affine> = points(rng, 500, |rng| G1Projective::random(rng).to_affine());
        let g2: Vec<G2Affine> = points(rng, 100, |rng| G2Projective::random(rng).to_affine());
        let folder = tempfile::tempdir()?;
        let mut file = File::create(folder.path().join("sample"))?;
        let list = |name, offset, points, point_bytes| Section { name, offset, points, point_bytes };
        // Somewhere, as after a length of four bytes.
        let first = list("h", 100, rng.gen_range(200_000..300_000), G1_BYTES);
        let second = list("b_g2", first.offset + first.points * G1_BYTES + 4, rng.gen_range(90_000..100_000), G2_BYTES);
        let (mut chosen_1, mut chosen_2) = (Vec::new(), Vec::new());
        file.seek(SeekFrom::Start(first.offset))?;
        let mut bytes = Vec::new();
        for _ in 0..first.points {
            let point = g1[rng.gen_range(0..g1.len())];
            bytes.extend_from_slice(&point.to_uncompressed());
            chosen_1.push(point);
        }
        bytes.extend_from_slice(&[0; 4]);
        for _ in 0..second.points {
            let point = g2[rng.gen_range(0..g2.len())];
            bytes.extend_from_slice(&point.to_uncompressed());
            chosen_2.push(point);
        }
        file.write_all(&bytes)?;
        let converted = [
            Table::<G1>::with_backend(Backend::Portable, &chosen_1).as_bytes().to_vec(),
            Table::<G2>::with_backend(Backend::Portable, &chosen_2).as_bytes().to_vec(),
        ];
        Ok(Self { folder, sections: [first, second], converted })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sample")
    }

    /// Room for both lists, of each of which a part stays on the device; poisoned.
    fn places(&self, gpu: &Gpu, stay: [u64; 2]) -> Result<[Place; 2], CudaError> {
        let place = |section: Section, stay: u64| {
            let of = |points: u64| (points * section.point_bytes) as usize;
            let resident = DeviceBuffer::new(gpu, of(stay), "a check's points")?;
            resident.all().fill_bytes(&Stream::new(gpu)?, 0xdb)?;
            let mut pinned = PinnedBuffer::new(gpu, of(section.points - stay), "a check's points")?;
            pinned.fill(0xdb);
            Ok::<_, CudaError>(Place { resident, pinned })
        };
        Ok([place(self.sections[0], stay[0])?, place(self.sections[1], stay[1])?])
    }

    fn load(&self, gpu: &Gpu, places: &mut [Place; 2], watch: &Watch<'_>) -> Result<(), LoadError> {
        let mut buffers = Buffers::new(gpu, 64 << 20)?;
        let mut lists: Vec<List<'_>> = places
            .iter_mut()
            .zip(self.sections)
            .map(|(Place { resident, pinned }, section)| List {
                section,
                resident: resident.all(),
                pinned: Some(pinned),
            })
            .collect();
        load(&self.path(), &mut lists, &mut buffers, 3, Checks::FILE, watch)
    }
}

fn points<P>(rng: &mut ChaCha8Rng, count: usize, one: impl Fn(&mut ChaCha8Rng) -> P) -> Vec<P> {
    (0..count).map(|_| one(rng)).collect()
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Whole lists and parts of them on the device, in chunks that are and are not full.
fn lists(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let sample = Sample::new(rng).map_err(text)?;
    let [first, second] = sample.sections.map(|section| section.points);
    for stay in [[first, second], [0, 0], [rng.gen_range(0..first), rng.gen_range(0..second)]] {
        let run = || {
            let mut places = sample.places(gpu, stay)?;
            sample.load(gpu, &mut places, &Watch::nobody())?;
            let stream = Stream::new(gpu)?;
            let whole = |place: &Place| {
                let mut bytes = place.resident.all().to_vec(&stream)?;
                bytes.extend_from_slice(&place.pinned);
                Ok::<_, CudaError>(bytes)
            };
            Ok::<_, LoadError>([whole(&places[0])?, whole(&places[1])?])
        };
        for (list, (found, expected)) in run().map_err(text)?.iter().zip(&sample.converted).enumerate() {
            if let Some(at) = found.iter().zip(expected).position(|(f, e)| f != e) {
                return Err(format!("{stay:?} points stay: list {list} differs at byte {at}"));
            }
        }
    }
    Ok(())
}

/// A bad point is named, wherever it is.
fn bad_point(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let sample = Sample::new(rng).map_err(text)?;
    for (list, section) in sample.sections.iter().enumerate() {
        let bad: Range<u64> = 0..section.points;
        let bad = rng.gen_range(bad);
        // The sign of y does not matter to the curve, any other change does.
        let damage = |byte: u8| {
            let mut file = File::options().write(true).open(sample.path())?;
            file.seek(SeekFrom::Start(section.offset + bad * section.point_bytes + 20))?;
            file.write_all(&[byte])
        };
        let good = {
            use std::os::unix::fs::FileExt;
            let mut byte = [0];
            let file = File::open(sample.path()).map_err(text)?;
            file.read_exact_at(&mut byte, section.offset + bad * section.point_bytes + 20).map_err(text)?;
            byte[0]
        };
        damage(good ^ 1).map_err(text)?;
        let stay = sample.sections.map(|section| rng.gen_range(0..=section.points));
        let mut places = sample.places(gpu, stay).map_err(text)?;
        let result = sample.load(gpu, &mut places, &Watch::nobody());
        damage(good).map_err(text)?;
        match result {
            Err(LoadError::File(error)) => match error.fault {
                SrsFault::BadPoint { section: name, index, .. } if (name, index) == (section.name, bad) => {}
                fault => return Err(format!("point {bad} of list {list} is bad, found: {fault}")),
            },
            other => return Err(format!("point {bad} of list {list} is bad, found {:?}", other.map_err(text))),
        }
    }
    Ok(())
}

/// A load that is stopped says so, and leaves no memory behind.
fn cancelled(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let sample = Sample::new(rng).map_err(text)?;
    let stay = sample.sections.map(|section| section.points);
    // The first one loads kernels, which stay.
    sample.load(gpu, &mut sample.places(gpu, stay).map_err(text)?, &Watch::nobody()).map_err(text)?;
    let before = gpu.free_memory().map_err(text)?;
    let total: u64 = sample.sections.iter().map(|section| section.points * section.point_bytes).sum();
    let end = rng.gen_range(0..total / 2);
    let stop = AtomicBool::new(false);
    let report = |done, _| stop.store(done > end, Ordering::Relaxed);
    let result = {
        let mut places = sample.places(gpu, stay).map_err(text)?;
        sample.load(gpu, &mut places, &Watch::new(&report, &stop))
    };
    match result {
        Err(LoadError::File(error)) if matches!(error.fault, SrsFault::Cancelled) => {}
        other => return Err(format!("expected a cancelled load, found {:?}", other.map_err(text))),
    }
    let after = gpu.free_memory().map_err(text)?;
    match after >= before {
        true => Ok(()),
        false => Err(format!("{} bytes of device memory are missing", before - after)),
    }
}

/// A place of another size, and a file that ends too early.
fn misfits(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<(), String> {
    let sample = Sample::new(rng).map_err(text)?;
    let stay = sample.sections.map(|section| section.points);
    let mut places = sample.places(gpu, [stay[0], stay[1] - 1]).map_err(text)?;
    places[1].pinned = PinnedBuffer::new(gpu, 0, "nothing").map_err(text)?;
    match sample.load(gpu, &mut places, &Watch::nobody()) {
        Err(LoadError::Device(CudaError::Misuse { .. })) => {}
        other => {
            return Err(format!("expected a refusal of a list that is too short, found {:?}", other.map_err(text)));
        }
    }
    let file = File::options().write(true).open(sample.path()).map_err(text)?;
    file.set_len(sample.sections[1].offset + 1_000).map_err(text)?;
    let mut places = sample.places(gpu, stay).map_err(text)?;
    match sample.load(gpu, &mut places, &Watch::nobody()) {
        Err(LoadError::File(error)) if matches!(error.fault, SrsFault::Io(_)) => Ok(()),
        other => Err(format!("expected the end of the file, found {:?}", other.map_err(text))),
    }
}

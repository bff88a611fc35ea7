//! Reading of parameter files. The file is read, never mapped: a mapped file that somebody truncates kills the process
//! with SIGBUS, a read one gives an error.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use crate::{
    arith::{Backend, Curve, G1, G2, Table},
    params::Digest,
};

use super::{
    Srs,
    layout::{G1_BYTES, G2_BYTES, Layout, Misfit, Section, VK_FIXED_BYTES},
    rows::{self, RowsWriter},
    watch::Watch,
};

/// Bytes read in one go, a multiple of both point sizes: large enough for the disk, small enough for the caches.
const CHUNK_BYTES: u64 = 192 << 14;

/// A parameter file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct SrsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: SrsFault,
}

/// What is wrong with a parameter file.
#[derive(Debug, thiserror::Error)]
pub enum SrsFault {
    /// The operating system's word.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Too short for the lists it announces.
    #[error("has {found} bytes, but list {section} ends at byte {needs}: truncated, or {looks}")]
    TooShort {
        /// Bytes of the file.
        found: u64,
        /// The list that does not fit.
        section: &'static str,
        /// Bytes needed.
        needs: u64,
        /// What its beginning looks like.
        looks: String,
    },
    /// Longer than its lists.
    #[error("has {found} bytes, but its lists end at byte {ends}: not a parameter file")]
    TooLong {
        /// Bytes of the file.
        found: u64,
        /// Where the lists end.
        ends: u64,
    },
    /// A list without points.
    #[error("list {section} is empty: not a parameter file")]
    Empty {
        /// The list.
        section: &'static str,
    },
    /// A point that cannot be.
    #[error("point {index} of {section} (at byte {offset}) {what}: the file is corrupt; fetch it again")]
    BadPoint {
        /// The list.
        section: &'static str,
        /// Which point of the list.
        index: u64,
        /// Where in the file.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Somebody does not want it any more.
    #[error("loading it was cancelled")]
    Cancelled,
    /// Changed by somebody while it was read.
    #[error("changed while it was being read; try again when it is complete")]
    Changed,
}

/// Reads a parameter file whole into memory: lengths first, then all points, each checked to be on its curve and not the
/// identity; the points of the verifying key are checked to be in the prime-order subgroup too. (For the others that check
/// would take minutes; the file's digest vouches for them.) The points are put in the form that `arithmetic` works on.
/// Parallel on the current rayon pool.
pub fn read(path: &Path, arithmetic: Backend) -> Result<Srs, SrsError> {
    read_watched(path, arithmetic, &Watch::nobody())
}

/// As [`read`], watched.
pub fn read_watched(path: &Path, arithmetic: Backend, watch: &Watch<'_>) -> Result<Srs, SrsError> {
    let mut g1 = Vec::with_capacity(4);
    let mut g2 = None;
    let vk = read_lists(path, watch, |list| {
        match list {
            List::G1(points) => g1.push(Table::with_backend(arithmetic, &points)),
            List::G2(points) => g2 = Some(Table::with_backend(arithmetic, &points)),
            List::Begin(..) => {}
        }
        Ok(())
    })?;
    let [h, l, a, b_g1] = <[_; 4]>::try_from(g1).ok().expect("four lists of G1 were read");
    Ok(Srs::new(vk, [h, l, a, b_g1], g2.expect("one list of G2 was read")))
}

/// Opens the parameters from the file `rows`, which was converted from `path` (whose digest is `source`) for
/// `arithmetic` by an earlier call, if `unchanged` and if it is that; otherwise converts them now, as [`read`] reads them,
/// list by list. Tells whether it did.
pub fn open_or_convert(
    path: &Path,
    source: Digest,
    rows_path: &Path,
    unchanged: bool,
    arithmetic: Backend,
    watch: &Watch<'_>,
) -> Result<(Srs, bool), SrsError> {
    let io = |error: io::Error| SrsError { path: rows_path.to_owned(), fault: error.into() };
    if unchanged && let Ok(Some(srs)) = rows::open(rows_path, arithmetic, source) {
        return Ok((srs, false));
    }
    let mut writer = None;
    let create = |lengths, vk: &_| RowsWriter::create(rows_path, arithmetic, source, lengths, vk);
    read_lists(path, watch, |list| {
        match list {
            List::Begin(lengths, vk) => writer = Some(create(lengths, vk)?),
            List::G1(points) => put(&mut writer, &Table::<G1>::with_backend(arithmetic, &points))?,
            List::G2(points) => put(&mut writer, &Table::<G2>::with_backend(arithmetic, &points))?,
        }
        Ok(())
    })?;
    writer.expect("the lists were begun").finish(rows_path).map_err(io)?;
    match rows::open(rows_path, arithmetic, source).map_err(io)? {
        Some(srs) => Ok((srs, true)),
        None => Err(io(io::Error::other("it is not what was just written"))),
    }
}
/// Checks the lengths of a parameter file against its size, without reading any point.
pub fn check_layout(path: &Path) -> Result<Layout, SrsError> {
    in_file(path, |file, metadata| scan(file, metadata.len()))
}

/// Reads a `.vk` file: the verifying key alone, all points checked.
pub fn read_verifying_key(path: &Path) -> Result<VerifyingKey<Bls12>, SrsError> {
    in_file(path, |file, metadata| {
        let found = metadata.len();
        let fixed = VK_FIXED_BYTES + 4;
        let too_short = |needs| too_short(file, found, "ic", needs);
        if found < fixed {
            return Err(too_short(fixed)?);
        }
        let points = u64::from(read_u32(file, VK_FIXED_BYTES)?);
        let ends = fixed + points * G1_BYTES;
        match found.cmp(&ends) {
            std::cmp::Ordering::Less => return Err(too_short(ends)?),
            std::cmp::Ordering::Greater => return Err(SrsFault::TooLong { found, ends }),
            std::cmp::Ordering::Equal if points == 0 => {
                return Err(SrsFault::Empty { section: "ic" });
            }
            std::cmp::Ordering::Equal => {}
        }
        let ic = Section { name: "ic", offset: fixed, points, point_bytes: G1_BYTES };
        read_vk(file, ic, &Watch::nobody())
    })
}

fn put<C: Curve>(writer: &mut Option<RowsWriter>, table: &Table<C>) -> io::Result<()> {
    writer.as_mut().expect("the lists were begun").list(table)
}

/// What a parameter file has, in its order.
enum List<'a> {
    /// The lengths of the lists, and the verifying key.
    Begin([usize; 5], &'a VerifyingKey<Bls12>),
    /// `h`, `l`, `a`, `b_g1`.
    G1(Vec<G1Affine>),
    /// `b_g2`.
    G2(Vec<G2Affine>),
}

/// Reads a file list by list, so that no more than one is in memory.
fn read_lists(
    path: &Path,
    watch: &Watch<'_>,
    mut sink: impl FnMut(List<'_>) -> io::Result<()>,
) -> Result<VerifyingKey<Bls12>, SrsError> {
    in_file(path, |file, metadata| {
        let layout = scan(file, metadata.len())?;
        watch.begin(layout.point_bytes());
        let [ic, h, l, a, b_g1, b_g2] = layout.sections;
        let vk = read_vk(file, ic, watch)?;
        sink(List::Begin([h, l, a, b_g1, b_g2].map(|section| section.points as usize), &vk))?;
        for section in [h, l, a, b_g1] {
            sink(List::G1(read_points(file, section, g1_from_bytes, watch)?))?;
        }
        sink(List::G2(read_points(file, b_g2, g2_from_bytes, watch)?))?;
        same_version(metadata, &file.metadata()?)?;
        Ok(vk)
    })
}

/// Does something with a parameter file, and puts its path to what is wrong with it.
pub(crate) fn in_file<T>(path: &Path, f: impl FnOnce(&File, &Metadata) -> Result<T, SrsFault>) -> Result<T, SrsError> {
    let run = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        f(&file, &metadata)
    };
    run().map_err(|fault| SrsError { path: path.to_owned(), fault })
}

fn scan(file: &File, found: u64) -> Result<Layout, SrsFault> {
    match Layout::scan(found, |offset| read_u32(file, offset))? {
        Ok(layout) => Ok(layout),
        Err(Misfit::TooShort { section, needs }) => Err(too_short(file, found, section, needs)?),
        Err(Misfit::TooLong { ends }) => Err(SrsFault::TooLong { found, ends }),
        Err(Misfit::Empty { section }) => Err(SrsFault::Empty { section }),
    }
}

/// Gateways that fail answer with a page of text, which download scripts then store under the file's name.
fn too_short(file: &File, found: u64, section: &'static str, needs: u64) -> io::Result<SrsFault> {
    let mut start = Vec::new();
    file.take(64.min(found)).read_to_end(&mut start)?;
    let printable = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace();
    let looks = if !start.is_empty() && start.iter().all(printable) {
        let text = String::from_utf8_lossy(&start);
        format!("an error page stored in its place (it begins {:?})", text.trim())
    } else {
        "not a parameter file".to_owned()
    };
    Ok(SrsFault::TooShort { found, section, needs, looks })
}

/// Whether nobody has written to a file meanwhile.
pub(crate) fn same_version(before: &Metadata, after: &Metadata) -> Result<(), SrsFault> {
    match before.len() == after.len() && before.modified().ok() == after.modified().ok() {
        true => Ok(()),
        false => Err(SrsFault::Changed),
    }
}

fn read_u32(file: &File, offset: u64) -> io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(u32::from_be_bytes(bytes))
}

fn read_vk(file: &File, ic: Section, watch: &Watch<'_>) -> Result<VerifyingKey<Bls12>, SrsFault> {
    // In the order of the file, whose fixed part has no lengths in between.
    let mut at = 0;
    let alpha_g1 = vk_g1(file, "alpha_g1", &mut at)?;
    let beta_g1 = vk_g1(file, "beta_g1", &mut at)?;
    let beta_g2 = vk_g2(file, "beta_g2", &mut at)?;
    let gamma_g2 = vk_g2(file, "gamma_g2", &mut at)?;
    let delta_g1 = vk_g1(file, "delta_g1", &mut at)?;
    let delta_g2 = vk_g2(file, "delta_g2", &mut at)?;
    let points = read_points(file, ic, g1_from_bytes, watch)?;
    if let Some(index) = points.iter().position(|p| !bool::from(p.is_torsion_free())) {
        return Err(bad_point(ic, index as u64, NOT_IN_SUBGROUP));
    }
    Ok(VerifyingKey { alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, ic: points })
}

fn vk_g1(file: &File, name: &'static str, at: &mut u64) -> Result<G1Affine, SrsFault> {
    vk_point(file, name, at, G1_BYTES, g1_from_bytes, |p| p.is_torsion_free().into())
}

fn vk_g2(file: &File, name: &'static str, at: &mut u64) -> Result<G2Affine, SrsFault> {
    vk_point(file, name, at, G2_BYTES, g2_from_bytes, |p| p.is_torsion_free().into())
}

const NOT_ON_CURVE: &str = "is not on the curve";
const IDENTITY: &str = "is the identity";
const NOT_IN_SUBGROUP: &str = "is not in the prime-order subgroup";

/// The point, or what is wrong with it.
type FromBytes<P> = fn(&[u8]) -> Result<P, &'static str>;

fn g1_from_bytes(bytes: &[u8]) -> Result<G1Affine, &'static str> {
    let bytes = bytes.try_into().expect("a slice of 96 bytes");
    // `unchecked` leaves out the subgroup check only.
    let point = Option::<G1Affine>::from(G1Affine::from_uncompressed_unchecked(bytes));
    not_identity(point.ok_or(NOT_ON_CURVE)?)
}

fn g2_from_bytes(bytes: &[u8]) -> Result<G2Affine, &'static str> {
    let bytes = bytes.try_into().expect("a slice of 192 bytes");
    let point = Option::<G2Affine>::from(G2Affine::from_uncompressed_unchecked(bytes));
    not_identity(point.ok_or(NOT_ON_CURVE)?)
}

fn not_identity<P: PrimeCurveAffine>(point: P) -> Result<P, &'static str> {
    if point.is_identity().into() { Err(IDENTITY) } else { Ok(point) }
}

/// Reads one point of the verifying key and moves on.
fn vk_point<P>(
    file: &File,
    name: &'static str,
    offset: &mut u64,
    point_bytes: u64,
    from_bytes: FromBytes<P>,
    in_subgroup: impl Fn(&P) -> bool,
) -> Result<P, SrsFault> {
    let section = Section { name, offset: *offset, points: 1, point_bytes };
    let mut bytes = vec![0; point_bytes as usize];
    file.read_exact_at(&mut bytes, *offset)?;
    *offset += point_bytes;
    let point = from_bytes(&bytes).map_err(|what| bad_point(section, 0, what))?;
    if in_subgroup(&point) { Ok(point) } else { Err(bad_point(section, 0, NOT_IN_SUBGROUP)) }
}

fn read_points<P: Send>(
    file: &File,
    section: Section,
    from_bytes: FromBytes<P>,
    watch: &Watch<'_>,
) -> Result<Vec<P>, SrsFault> {
    let mut points = Vec::with_capacity(section.points as usize);
    let mut buffer = Vec::new();
    let chunk = CHUNK_BYTES / section.point_bytes;
    for first in (0..section.points).step_by(chunk as usize) {
        let count = chunk.min(section.points - first);
        buffer.resize((count * section.point_bytes) as usize, 0);
        watch.read(count * section.point_bytes)?;
        file.read_exact_at(&mut buffer, section.offset + first * section.point_bytes)?;
        let parsed: Vec<Result<P, &str>> =
            buffer.par_chunks_exact(section.point_bytes as usize).with_min_len(256).map(from_bytes).collect();
        for (i, point) in parsed.into_iter().enumerate() {
            points.push(point.map_err(|what| bad_point(section, first + i as u64, what))?);
        }
    }
    Ok(points)
}

/// The error about a point.
pub(crate) fn bad_point(section: Section, index: u64, what: &'static str) -> SrsFault {
    SrsFault::BadPoint { section: section.name, index, offset: section.offset + index * section.point_bytes, what }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::toy::{Toy, trapdoor};

    /// A small real parameter file.
    fn parameters() -> Vec<u8> {
        let toy = Toy { seed: 5, constraints: 6, percent_inputs: 20, b_constant: false, blank: false };
        let mut bytes = Vec::new();
        toy.reference_parameters(&trapdoor()).write(&mut bytes).unwrap();
        bytes
    }

    fn fault(bytes: &[u8]) -> SrsFault {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.params");
        fs::write(&path, bytes).unwrap();
        match read(&path, Backend::current()) {
            Ok(_) => panic!("the file was accepted"),
            Err(error) => {
                assert!(error.to_string().contains("test.params: "));
                error.fault
            }
        }
    }

    #[test]
    fn a_truncated_file_is_called_truncated() {
        let bytes = parameters();
        for cut in [0, 1, 500, bytes.len() / 2, bytes.len() - 1] {
            let fault = fault(&bytes[..cut]);
            let SrsFault::TooShort { found, needs, .. } = fault else { panic!("{cut}: {fault}") };
            assert_eq!(found, cut as u64);
            assert!(needs > found);
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(fault(&longer), SrsFault::TooLong { .. }));
    }

    #[test]
    fn an_error_page_is_called_an_error_page() {
        let text = fault(b"<html><body>504 Gateway Time-out</body></html>\n").to_string();
        assert!(text.contains("error page") && text.contains("504"), "{text}");
    }

    #[test]
    fn a_wrong_point_is_located() {
        let bytes = parameters();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("good.params");
        fs::write(&path, &bytes).unwrap();
        let layout = check_layout(&path).unwrap();
        for section in layout.sections {
            let mut damaged = bytes.clone();
            let at = section.offset + section.point_bytes;
            damaged[at as usize + 40] ^= 1;
            let SrsFault::BadPoint { section: name, index, offset, what } = fault(&damaged) else {
                panic!("{} is not a bad point", section.name)
            };
            assert_eq!((name, index, offset), (section.name, 1, at));
            assert_eq!(what, NOT_ON_CURVE);
        }
        // The identity, written as bellperson writes it.
        let mut damaged = bytes.clone();
        let at = layout.sections[1].offset as usize;
        damaged[at..at + 96].fill(0);
        damaged[at] = 0x40;
        assert!(matches!(fault(&damaged), SrsFault::BadPoint { section: "h", index: 0, what: IDENTITY, .. }));
    }

    #[test]
    fn verifying_key_points_must_be_in_the_subgroup() {
        // The first point on the curve that is outside the subgroup.
        let outside = (0u64..)
            .find_map(|x| {
                let mut compressed = [0u8; 48];
                compressed[40..].copy_from_slice(&x.to_be_bytes());
                compressed[0] = 0x80;
                let point = Option::<G1Affine>::from(G1Affine::from_compressed_unchecked(&compressed))?;
                (!bool::from(point.is_torsion_free())).then_some(point)
            })
            .unwrap();
        let mut bytes = parameters();
        bytes[..96].copy_from_slice(&outside.to_uncompressed());
        assert!(matches!(fault(&bytes), SrsFault::BadPoint { section: "alpha_g1", what: NOT_IN_SUBGROUP, .. }));
    }

    #[test]
    fn a_load_is_watched_and_stopped() {
        use std::sync::{
            Mutex,
            atomic::{AtomicBool, Ordering},
        };
        let bytes = parameters();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.params");
        fs::write(&path, &bytes).unwrap();
        let total = check_layout(&path).unwrap().point_bytes();
        let (seen, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let report = |done, of| seen.lock().unwrap().push((done, of));
        read_watched(&path, Backend::current(), &Watch::new(&report, &stop)).unwrap();
        let all = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!((all[0], all[all.len() - 1]), ((0, total), (total, total)));
        assert!(all.is_sorted());

        let report = |done, _| stop.store(done > total / 2, Ordering::Relaxed);
        let Err(error) = read_watched(&path, Backend::current(), &Watch::new(&report, &stop)) else {
            panic!("it was not stopped")
        };
        assert!(matches!(error.fault, SrsFault::Cancelled), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = check_layout(Path::new("/nowhere/x.params")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/x.params"), "{error}");
    }
}

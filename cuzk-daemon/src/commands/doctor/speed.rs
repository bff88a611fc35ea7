//! How fast a disk is, by a short try that goes past the page cache where the file system allows it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};

use rand::RngCore;

/// Bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// To the disk, synced.
    pub(super) write: Option<f64>,
    /// From the disk; `None` where only the page cache could be read.
    pub(super) read: Option<f64>,
}

/// What one call moves; a multiple of every block size.
const CHUNK: usize = 4 << 20;
/// What such files are aligned to.
const ALIGNMENT: usize = 4096;
/// A try ends after so many bytes, or so much time, whatever comes first.
const AT_MOST: u64 = 64 << 20;
const NO_LONGER: Duration = Duration::from_secs(1);

/// Writes a file in a folder, reads it, and leaves nothing behind.
pub(super) fn of_folder(folder: &Path) -> io::Result<Speed> {
    let path = tempfile::Builder::new().prefix(".cuzk-doctor").tempfile_in(folder)?.into_temp_path();
    let (mut file, direct) = open(&path, OpenOptions::new().write(true))?;
    let mut buffer = Buffer::new();
    rand::thread_rng().fill_bytes(buffer.bytes());
    let begin = Instant::now();
    let mut written = 0;
    while written < AT_MOST && begin.elapsed() < NO_LONGER {
        file.write_all(buffer.bytes())?;
        written += CHUNK as u64;
    }
    file.sync_data()?;
    let write = Some(rate(written, begin.elapsed()));
    drop(file);
    let read = if direct { Some(read(open(&path, OpenOptions::new().read(true))?.0)?) } else { None };
    Ok(Speed { write, read })
}

/// Reads the beginning of a file.
pub(super) fn of_file(path: &Path) -> io::Result<Speed> {
    let (file, direct) = open(path, OpenOptions::new().read(true))?;
    Ok(Speed { write: None, read: if direct { Some(read(file)?) } else { None } })
}

fn read(mut file: File) -> io::Result<f64> {
    let mut buffer = Buffer::new();
    let begin = Instant::now();
    let mut done = 0;
    while done < AT_MOST && begin.elapsed() < NO_LONGER {
        match file.read(buffer.bytes())? {
            0 => break,
            bytes => done += bytes as u64,
        }
    }
    Ok(rate(done, begin.elapsed()))
}

/// Past the page cache if that can be had, and whether it can.
fn open(path: &Path, options: &OpenOptions) -> io::Result<(File, bool)> {
    match options.clone().custom_flags(libc::O_DIRECT).open(path) {
        Ok(file) => Ok((file, true)),
        Err(_) => Ok((options.open(path)?, false)),
    }
}

fn rate(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64().max(1e-6)
}

/// Memory at an address as the kernel wants it.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new() -> Self {
        Self(vec![0; CHUNK + ALIGNMENT])
    }

    fn bytes(&mut self) -> &mut [u8] {
        let skip = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[skip..skip + CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_tried_and_left_as_it_was() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let speed = of_folder(dir.path()).expect("writable");
        assert!(speed.write.is_some_and(|rate| rate > 0.0) && speed.read.is_none_or(|rate| rate > 0.0), "{speed:?}");
        assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 0);
        assert!(of_folder(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn a_file_is_only_read() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7; 10_000]).expect("writable");
        assert_eq!(of_file(&path).expect("readable").write, None);
        assert!(of_file(&dir.path().join("absent")).is_err());
    }
}

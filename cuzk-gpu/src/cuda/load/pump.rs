//! Threads that read chunks of a file into a few buffers, while another one takes what has been read.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
};

use super::chunks::Chunk;
use crate::srs::{SrsFault, Watch};

/// A buffer for chunks.
pub(super) trait Slot: Send {
    /// What may go wrong.
    type Error: From<SrsFault> + Send;

    /// The buffer, once nobody needs what is in it: waits for that.
    fn free(&mut self) -> Result<&mut [u8], Self::Error>;
}

/// Reads all chunks, each into a slot that is large enough, and gives each to `take`, in any order. Ends at the first
/// error.
pub(super) fn pump<S: Slot>(
    file: &File,
    chunks: &[Chunk],
    slots: impl IntoIterator<Item = S>,
    readers: usize,
    watch: &Watch<'_>,
    mut take: impl FnMut(&Chunk, &mut S) -> Result<(), S::Error>,
) -> Result<(), S::Error> {
    let next = AtomicUsize::new(0);
    let (to_free, free) = channel();
    slots.into_iter().for_each(|slot| {
        // The receiver is alive.
        let _ = to_free.send(slot);
    });
    let free = Mutex::new(free);
    thread::scope(|scope| {
        let (to_full, full) = channel();
        for _ in 0..readers.max(1) {
            let (to_full, free, next) = (to_full.clone(), &free, &next);
            scope.spawn(move || {
                // A slot first, then a chunk: whoever has a chunk can read it. Ends when there are no more chunks, when
                // reading fails, or when nobody takes what is read.
                while let Some(mut slot) = receive(free) {
                    let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let read = read(file, chunk, &mut slot, watch).map(|()| (chunk, slot));
                    let failed = read.is_err();
                    if to_full.send(read).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(to_full);
        // Dropped when this ends, for whatever reason: that ends the readers.
        let to_free = to_free;
        for _ in chunks {
            let Ok(read) = full.recv() else { break };
            let (chunk, mut slot) = read?;
            take(chunk, &mut slot)?;
            // The receiver is alive.
            let _ = to_free.send(slot);
        }
        Ok(())
    })
}

fn receive<S>(free: &Mutex<Receiver<S>>) -> Option<S> {
    free.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn read<S: Slot>(file: &File, chunk: &Chunk, slot: &mut S, watch: &Watch<'_>) -> Result<(), S::Error> {
    watch.read(chunk.bytes as u64)?;
    let buffer = slot.free()?;
    file.read_exact_at(&mut buffer[..chunk.bytes], chunk.offset).map_err(|error| SrsFault::Io(error).into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::{super::chunks::chunks, *};
    use crate::srs::Section;

    impl Slot for Vec<u8> {
        type Error = SrsFault;

        fn free(&mut self) -> Result<&mut [u8], SrsFault> {
            self.fill(0xdb);
            Ok(self)
        }
    }

    struct Case {
        file: File,
        bytes: Vec<u8>,
        chunks: Vec<Chunk>,
    }

    fn case() -> Case {
        let bytes: Vec<u8> = (0..96 * 1000u32).map(|i| (i / 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let section = Section { name: "list", offset: 0, points: 1000, point_bytes: 96 };
        Case { file, bytes, chunks: chunks(&[(section, 300)], 960) }
    }

    fn slots(count: usize) -> Vec<Vec<u8>> {
        vec![vec![0; 960]; count]
    }

    #[test]
    fn every_chunk_is_read_once() {
        let case = case();
        for (count, readers) in [(1, 1), (1, 4), (3, 2), (8, 4)] {
            let mut copy = vec![0; case.bytes.len()];
            pump(&case.file, &case.chunks, slots(count), readers, &Watch::nobody(), |chunk, slot| {
                let at = chunk.offset as usize;
                copy[at..at + chunk.bytes].copy_from_slice(&slot[..chunk.bytes]);
                Ok(())
            })
            .unwrap();
            assert!(copy == case.bytes, "{count} slots, {readers} readers");
        }
    }

    #[test]
    fn it_ends_when_it_is_stopped_and_when_something_fails() {
        let case = case();
        let stop = AtomicBool::new(false);
        let report = |done, _| stop.store(done > 20_000, Ordering::Relaxed);
        let watch = Watch::new(&report, &stop);
        let stopped = pump(&case.file, &case.chunks, slots(2), 3, &watch, |_, _| Ok(()));
        assert!(matches!(stopped, Err(SrsFault::Cancelled)), "{stopped:?}");

        let taken = pump(&case.file, &case.chunks, slots(2), 3, &Watch::nobody(), |_, _| Err(SrsFault::Changed));
        assert!(matches!(taken, Err(SrsFault::Changed)), "{taken:?}");

        case.file.set_len(50_000).unwrap();
        let short = pump(&case.file, &case.chunks, slots(2), 3, &Watch::nobody(), |_, _| Ok(()));
        assert!(matches!(&short, Err(SrsFault::Io(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof), "{short:?}");
    }
}

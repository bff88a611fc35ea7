//! The load.

use std::{fs::File, path::Path};

use super::{
    chunks::{Chunk, chunks},
    pump::{Slot, pump},
};
use crate::{
    arith::{G1, G2},
    cuda::{
        error::CudaError,
        gpu::Gpu,
        memory::{DeviceBuffer, DeviceSlice, PinnedBuffer},
        points::{BadPoint, Checks, Converter},
        stream::{Event, Stream},
    },
    srs::{self, G1_BYTES, Section, SrsError, SrsFault, Watch},
};

/// Where the points of a list of a parameter file go, in the kernels' form.
pub struct List<'a> {
    /// The list.
    pub section: Section,
    /// The first points, as many as there is room for here.
    pub resident: DeviceSlice<'a, u8>,
    /// The others. May be absent if there are none.
    pub pinned: Option<&'a mut PinnedBuffer<u8>>,
}

/// Page-locked buffers that chunks are read into, and one on the device for those that do not stay there. Can be used for
/// one load after the other.
pub struct Buffers {
    stream: Stream,
    slots: Vec<Buffer>,
    passing: DeviceBuffer<u8>,
}

struct Buffer {
    bytes: PinnedBuffer<u8>,
    /// Reached when the device has what was in it.
    copied: Event,
}

/// Why parameters were not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file, or somebody who cancelled it.
    #[error(transparent)]
    File(#[from] SrsError),
    /// The device.
    #[error("loading parameters: {0}")]
    Device(#[from] CudaError),
}

/// The same before it is said of which file.
enum Fault {
    File(SrsFault),
    Device(CudaError),
}

/// A list's converter. They find bad points list by list.
enum AnyConverter {
    G1(Converter<G1>),
    G2(Converter<G2>),
}

/// Bytes of a chunk: whole points of both groups. Large enough for the bus, small enough for many at once.
const CHUNK_BYTES: usize = 192 << 16;

impl Buffers {
    /// Allocates buffers of `bytes` page-locked bytes in all.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Self, CudaError> {
        let slot = |_| {
            let bytes = PinnedBuffer::new(gpu, CHUNK_BYTES, "loading parameters")?;
            Ok::<_, CudaError>(Buffer { bytes, copied: Event::new(gpu)? })
        };
        Ok(Self {
            stream: Stream::new(gpu)?,
            slots: (0..(bytes / CHUNK_BYTES).max(2)).map(slot).collect::<Result<_, _>>()?,
            passing: DeviceBuffer::new(gpu, CHUNK_BYTES, "parameters on their way")?,
        })
    }
}

/// Loads lists of a parameter file, read by `readers` threads; waits until they are there. Memory that they were to be
/// put in holds anything after an error.
///
/// # Errors
/// [`LoadError::File`] about a file that cannot be read, that changes meanwhile or has a bad point (the first one of its
/// list), or if `watch` stopped it; [`LoadError::Device`] if a list does not fit its place, or what the driver reports.
pub fn load(
    path: &Path,
    lists: &mut [List<'_>],
    buffers: &mut Buffers,
    readers: usize,
    checks: Checks,
    watch: &Watch<'_>,
) -> Result<(), LoadError> {
    let mut device = None;
    let result = srs::in_file(path, |file, before| {
        watch.begin(lists.iter().map(|list| list.section.points * list.section.point_bytes).sum());
        match run(file, lists, buffers, readers, checks, watch) {
            Ok(()) => srs::same_version(before, &file.metadata()?),
            Err(Fault::File(fault)) => Err(fault),
            Err(Fault::Device(error)) => {
                device = Some(error);
                Ok(())
            }
        }
    });
    match device {
        Some(error) => Err(error.into()),
        None => Ok(result?),
    }
}

fn run(
    file: &File,
    lists: &mut [List<'_>],
    Buffers { stream, slots, passing }: &mut Buffers,
    readers: usize,
    checks: Checks,
    watch: &Watch<'_>,
) -> Result<(), Fault> {
    let mut split = Vec::with_capacity(lists.len());
    let mut converters = Vec::with_capacity(lists.len());
    for list in lists.iter() {
        split.push((list.section, list.resident_points(stream.gpu())?));
        converters.push(AnyConverter::new(stream, &list.section)?);
    }
    let chunks = chunks(&split, CHUNK_BYTES);
    let queued = pump(file, &chunks, slots.iter_mut(), readers, watch, |chunk, slot| {
        let list = &mut lists[chunk.list];
        Ok(list.queue(stream, chunk, slot, passing, &converters[chunk.list], checks)?)
    });
    // Whatever happened, nothing of this is under way when the buffers go on to other uses.
    let done = stream.wait();
    queued?;
    done?;
    for (converter, list) in converters.iter().zip(lists) {
        if let Some(BadPoint { index, fault }) = converter.finish(stream)? {
            return Err(Fault::File(srs::bad_point(list.section, index, fault.text())));
        }
    }
    Ok(())
}

impl List<'_> {
    /// How many points stay on the device.
    fn resident_points(&self, gpu: &Gpu) -> Result<u64, CudaError> {
        let Section { name, points, point_bytes, .. } = self.section;
        let (all, resident) = (points * point_bytes, self.resident.len() as u64);
        let pinned = self.pinned.as_ref().map_or(0, |pinned| pinned.len() as u64);
        match resident.is_multiple_of(point_bytes) && resident + pinned == all {
            true => Ok(resident / point_bytes),
            false => Err(gpu.misuse(format!(
                "{resident} bytes of device memory and {pinned} of the host for {points} points of {name}, \
                 {point_bytes} bytes each"
            ))),
        }
    }

    /// Queues copy and conversion of a chunk.
    fn queue(
        &mut self,
        stream: &Stream,
        chunk: &Chunk,
        slot: &mut Buffer,
        passing: &DeviceBuffer<u8>,
        converter: &AnyConverter,
        checks: Checks,
    ) -> Result<(), CudaError> {
        let begin = (chunk.first * self.section.point_bytes) as usize;
        let place = match chunk.stays {
            true => self.resident.range(begin..begin + chunk.bytes)?,
            false => passing.all().range(..chunk.bytes)?,
        };
        // SAFETY: the slot is not written to before the event below, and is freed after the stream's end.
        unsafe { place.upload_async(stream, &slot.bytes[..chunk.bytes])? };
        slot.copied.record(stream)?;
        converter.convert(stream, place, chunk.first, checks)?;
        if let (false, Some(pinned)) = (chunk.stays, &mut self.pinned) {
            let begin = begin - self.resident.len();
            // SAFETY: borrowed until the load has waited for the stream, and nobody looks at it before.
            unsafe { place.download_async(stream, &mut pinned[begin..begin + chunk.bytes])? };
        }
        Ok(())
    }
}

impl AnyConverter {
    fn new(stream: &Stream, section: &Section) -> Result<Self, CudaError> {
        match section.point_bytes {
            G1_BYTES => Converter::new(stream).map(Self::G1),
            _ => Converter::new(stream).map(Self::G2),
        }
    }

    fn convert(
        &self,
        stream: &Stream,
        place: DeviceSlice<'_, u8>,
        first: u64,
        checks: Checks,
    ) -> Result<(), CudaError> {
        match self {
            Self::G1(converter) => converter.convert(stream, place, place, first, checks),
            Self::G2(converter) => converter.convert(stream, place, place, first, checks),
        }
    }

    fn finish(&self, stream: &Stream) -> Result<Option<BadPoint>, CudaError> {
        match self {
            Self::G1(converter) => converter.finish(stream),
            Self::G2(converter) => converter.finish(stream),
        }
    }
}

impl Slot for &mut Buffer {
    type Error = Fault;

    fn free(&mut self) -> Result<&mut [u8], Fault> {
        self.copied.wait()?;
        Ok(&mut self.bytes)
    }
}

impl From<SrsFault> for Fault {
    fn from(fault: SrsFault) -> Self {
        Self::File(fault)
    }
}

impl From<CudaError> for Fault {
    fn from(error: CudaError) -> Self {
        Self::Device(error)
    }
}

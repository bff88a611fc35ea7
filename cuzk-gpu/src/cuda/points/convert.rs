//! Conversion and checks of points.

use std::{fmt, marker::PhantomData};

use crate::cuda::{
    error::CudaError,
    launch::{Args, Function, Grid},
    memory::{DeviceBuffer, DeviceSlice},
    msm::DeviceCurve,
    stream::Stream,
};

/// Threads of a block.
const THREADS: u32 = 128;

/// What is looked at besides the encoding: that every coordinate is below p and no flag is set but that of the identity
/// is always checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The identity is a fault.
    pub no_identity: bool,
    /// The point is on its curve.
    pub curve: bool,
    /// The point is in the subgroup of prime order (and on its curve). By an endomorphism; about a thousand products.
    pub subgroup: bool,
}

/// What is wrong with a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// A coordinate is not below p, or a flag is set.
    Encoding,
    /// It is the identity.
    Identity,
    /// It does not solve the curve's equation.
    Curve,
    /// It is on the curve, but not of the group's order.
    Subgroup,
}

/// The first bad point of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPoint {
    /// Which point of the list.
    pub index: u64,
    /// What is wrong with it.
    pub fault: PointFault,
}

/// The kernels for one group, on one device, and what they have found in one list of points.
#[derive(Debug)]
pub struct Converter<C> {
    convert: Function,
    curve: Function,
    subgroup: Function,
    /// Index 2^8 + kind of the first fault; all ones if there is none.
    first_fault: DeviceBuffer<u64>,
    group: PhantomData<C>,
}

impl Checks {
    /// What is checked of the points of a parameter file, whose digest vouches for the rest.
    pub const FILE: Self = Self { no_identity: true, curve: true, subgroup: false };
}

impl PointFault {
    /// In the order of the kernels' numbers.
    const ALL: [Self; 4] = [Self::Encoding, Self::Identity, Self::Curve, Self::Subgroup];

    /// What to say about a point: "point 7 ...".
    pub fn text(self) -> &'static str {
        match self {
            Self::Encoding => "is not the encoding of a point",
            Self::Identity => "is the identity",
            Self::Curve => "is not on the curve",
            Self::Subgroup => "is not in the prime-order subgroup",
        }
    }
}

impl fmt::Display for PointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl BadPoint {
    /// From what kernels keep.
    pub(super) fn decode(word: u64) -> Option<Self> {
        let fault = PointFault::ALL.get((word & 0xff) as usize)?;
        Some(Self { index: word >> 8, fault: *fault })
    }
}

impl<C: DeviceCurve> Converter<C> {
    /// Loads the kernels.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(stream: &Stream) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        let function = |name| gpu.function("points", &format!("points_{name}_{}", C::SUFFIX));
        let converter = Self {
            convert: function("convert")?,
            curve: function("check_curve")?,
            subgroup: function("check_subgroup")?,
            first_fault: DeviceBuffer::new(gpu, 1, "the first bad point")?,
            group: PhantomData,
        };
        converter.begin(stream)?;
        Ok(converter)
    }

    /// Queues forgetting the faults found so far: a new list begins.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn begin(&self, stream: &Stream) -> Result<(), CudaError> {
        self.first_fault.all().fill_bytes(stream, 0xff)
    }

    /// Queues the conversion of a chunk of a list, and its checks. `from` holds points as a parameter file does:
    /// uncompressed and big-endian, [`DeviceCurve::POINT_BYTES`] each, beginning at a multiple of 16 bytes; `to`, which
    /// may be the same memory, gets them in Montgomery form, the identity as zeros. `first` is the index in the list of
    /// the chunk's first point. What a bad point becomes is not told; [`Self::finish`] tells that there is one.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the slices are not of the same whole number of points, or what the driver reports.
    pub fn convert(
        &self,
        stream: &Stream,
        from: DeviceSlice<'_, u8>,
        to: DeviceSlice<'_, u8>,
        first: u64,
        checks: Checks,
    ) -> Result<(), CudaError> {
        let len = from.len() / C::POINT_BYTES;
        let whole = from.len() == len * C::POINT_BYTES && to.len() == from.len();
        let aligned = from.address().is_multiple_of(16) && to.address().is_multiple_of(16);
        let (true, true, Ok(count)) = (whole, aligned, u32::try_from(len)) else {
            let what = format!(
                "converting {from:?} to {to:?}, points of {} bytes at multiples of 16 bytes, at most 2^32 at a time",
                C::POINT_BYTES
            );
            return Err(stream.gpu().misuse(what));
        };
        if len == 0 {
            return Ok(());
        }
        let grid = Grid::cover(len, THREADS);
        let fault = self.first_fault.all();
        let convert = Args::new().slice(from).slice(to).value(count).value(first);
        let convert = convert.value(u32::from(checks.no_identity)).slice(fault);
        let check = Args::new().slice(to).value(count).value(first).slice(fault);
        // SAFETY: both slices have `count` points, each of which one thread reads before it writes it.
        unsafe {
            self.convert.launch(stream, grid, &convert)?;
            if checks.curve || checks.subgroup {
                self.curve.launch(stream, grid, &check)?;
            }
            if checks.subgroup {
                self.subgroup.launch(stream, grid, &check)?;
            }
        }
        Ok(())
    }

    /// Waits for the chunks queued since [`Self::begin`], and tells the first bad point among them.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn finish(&self, stream: &Stream) -> Result<Option<BadPoint>, CudaError> {
        let mut word = [0];
        self.first_fault.all().download(stream, &mut word)?;
        Ok(BadPoint::decode(word[0]))
    }
}

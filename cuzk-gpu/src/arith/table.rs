//! Tables of points, and the sums over them: the entrance to both backends.

use std::{ops::Range, sync::Arc};

use blst::blst_fr;
use blstrs::Scalar;
use memmap2::Mmap;

use crate::arith::backend::Backend;
use crate::arith::curve::{Curve, G1, G2};
use crate::arith::ifma::Ifma;
use crate::arith::msm::{Engine, identities, pippenger, select};
use crate::arith::portable::Portable;
use crate::arith::storage::Stored;

/// Points in the form that a backend works on. Identities are allowed, anywhere.
pub enum Table<C: Curve> {
    /// 128-byte (G1) or 256-byte (G2) rows.
    Ifma(Stored<<Ifma as Engine<C>>::Row>),
    /// Points as they came.
    Portable(Stored<<Portable as Engine<C>>::Row>),
}

/// Points of G1, e.g. one query of the Groth16 parameters.
pub type G1Table = Table<G1>;

/// Points of G2.
pub type G2Table = Table<G2>;

impl<C: Curve> Table<C> {
    /// A table in the form of [`Backend::current`]; in parallel, about 30 ns per G1 point and thread for IFMA.
    pub fn new(points: &[C::Affine]) -> Self {
        Self::with_backend(Backend::current(), points)
    }

    /// A table in the form of `backend`, or of `Portable` where the machine lacks the instructions.
    pub fn with_backend(backend: Backend, points: &[C::Affine]) -> Self {
        assert!(points.len() < 1 << 31, "row numbers have 31 bits");
        let identities = identities::<C>(points);
        match backend.checked() {
            // SAFETY: `checked` saw the instructions. So it was for every table of this variant, in what follows.
            Backend::Ifma => Self::Ifma(Stored::in_memory(unsafe { <Ifma as Engine<C>>::rows(points) }, identities)),
            Backend::Portable => {
                // SAFETY: scalar code runs anywhere.
                let rows = unsafe { <Portable as Engine<C>>::rows(points) };
                Self::Portable(Stored::in_memory(rows, identities))
            }
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        match self {
            Self::Ifma(rows) => rows.points().rows.len(),
            Self::Portable(points) => points.points().rows.len(),
        }
    }

    /// Points in a file of ours that is mapped, in the form of `backend`, none the identity.
    ///
    /// # Safety
    /// The range holds what [`Self::as_bytes`] gave, and the file keeps its length and contents as long as it is mapped.
    ///
    /// # Panics
    /// If the range is not inside the file, not aligned to a point, or not whole points.
    pub(crate) unsafe fn mapped(backend: Backend, file: Arc<Mmap>, bytes: Range<usize>) -> Self {
        match backend.checked() {
            // SAFETY: the caller's; limbs may be any bits.
            Backend::Ifma => Self::Ifma(unsafe { Stored::mapped(file, bytes) }),
            // SAFETY: likewise.
            Backend::Portable => Self::Portable(unsafe { Stored::mapped(file, bytes) }),
        }
    }

    /// The same points in memory, for a table that is read at random.
    pub(crate) fn into_memory(self) -> Self {
        match self {
            Self::Ifma(rows) => Self::Ifma(rows.into_memory()),
            Self::Portable(points) => Self::Portable(points.into_memory()),
        }
    }

    /// Has the system read the points ahead where they are in a file.
    pub(crate) fn will_need(&self) {
        match self {
            Self::Ifma(rows) => rows.storage().will_need(),
            Self::Portable(points) => points.storage().will_need(),
        }
    }

    /// Takes points that are in a file out of this process's memory until they are used again.
    pub(crate) fn release(&self) {
        match self {
            Self::Ifma(rows) => rows.storage().release(),
            Self::Portable(points) => points.storage().release(),
        }
    }

    /// Bytes a point takes in the form of `backend`.
    pub fn point_bytes(backend: Backend) -> usize {
        match backend {
            Backend::Ifma => size_of::<<Ifma as Engine<C>>::Row>(),
            Backend::Portable => size_of::<<Portable as Engine<C>>::Row>(),
        }
    }

    /// The points as they are in memory, to be kept in a file for this machine and this form of table.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Ifma(rows) => rows.as_bytes(),
            Self::Portable(points) => points.as_bytes(),
        }
    }

    /// Has the table no points?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which backend this table is for.
    pub fn backend(&self) -> Backend {
        match self {
            Self::Ifma(_) => Backend::Ifma,
            Self::Portable(_) => Backend::Portable,
        }
    }

    /// Sum of `scalars[i]` times point i over all the scalars; there may be fewer scalars than points, not more.
    pub fn msm(&self, scalars: &[Scalar]) -> C::Projective {
        assert!(scalars.len() <= self.len(), "{} scalars for {} points", scalars.len(), self.len());
        self.msm_of(None, raw_scalars(scalars))
    }

    /// Sum of `scalars[i]` times point `indices[i]`: few full scalars over a large table. Repeated indices are allowed.
    pub fn msm_indexed(&self, indices: &[u32], scalars: &[Scalar]) -> C::Projective {
        assert_eq!(indices.len(), scalars.len(), "an index for each scalar");
        assert!(indices.iter().all(|&i| (i as usize) < self.len()), "indices are below {}", self.len());
        self.msm_of(Some(indices), raw_scalars(scalars))
    }

    fn msm_of(&self, indices: Option<&[u32]>, scalars: &[blst_fr]) -> C::Projective {
        match self {
            // SAFETY: the table exists, so the instructions do; the callers have compared the indices with the length.
            Self::Ifma(rows) => unsafe { pippenger::msm::<C, Ifma>(rows.points(), indices, scalars) },
            // SAFETY: scalar code runs anywhere; the indices as above.
            Self::Portable(points) => unsafe { pippenger::msm::<C, Portable>(points.points(), indices, scalars) },
        }
    }

    /// Sum of the points i whose bit `bitmap[i / 64] >> (i % 64) & 1` is set. Bits past the table are ignored, missing
    /// words are zero.
    pub fn sum_selected(&self, bitmap: &[u64]) -> C::Projective {
        match self {
            // SAFETY: the table exists, so the instructions do.
            Self::Ifma(rows) => unsafe { select::sum_selected::<C, Ifma>(rows.points(), bitmap) },
            // SAFETY: scalar code runs anywhere.
            Self::Portable(points) => unsafe { select::sum_selected::<C, Portable>(points.points(), bitmap) },
        }
    }
}

/// Scalars as blst sees them.
pub(crate) fn raw_scalars(scalars: &[Scalar]) -> &[blst_fr] {
    // SAFETY: `Scalar` is `repr(transparent)` over `blst_fr`.
    unsafe { core::slice::from_raw_parts(scalars.as_ptr().cast(), scalars.len()) }
}

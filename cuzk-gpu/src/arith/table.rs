//! Tables of points, and the sums over them: the entrance to both backends.

use core::mem::MaybeUninit;

use blst::blst_fr;
use blstrs::Scalar;

use crate::arith::backend::Backend;
use crate::arith::curve::{Curve, G1, G2};
use crate::arith::ifma::{self, Ifma};
use crate::arith::memory::{huge_copy, refill};
use crate::arith::msm::{Points, identities, pippenger, select};
use crate::arith::portable::Portable;

/// Points in the form that a backend works on. Identities are allowed, anywhere.
pub enum Table<C: Curve> {
    /// 128-byte (G1) or 256-byte (G2) rows.
    Ifma(ifma::rows::Rows<C>),
    /// Points as they came.
    Portable(Vec<C::Affine>),
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
        match backend.checked() {
            // SAFETY: `checked` saw the instructions. So it was for every table of this variant, in what follows.
            Backend::Ifma => Self::Ifma(unsafe { ifma::rows::Rows::new(points) }),
            Backend::Portable => Self::Portable(huge_copy(points)),
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        match self {
            Self::Ifma(rows) => rows.points().rows.len(),
            Self::Portable(points) => points.len(),
        }
    }

    /// A table without points in the form of `backend`, to be refilled.
    pub fn empty(backend: Backend) -> Self {
        match backend.checked() {
            Backend::Ifma => Self::Ifma(ifma::rows::Rows::empty()),
            Backend::Portable => Self::Portable(Vec::new()),
        }
    }

    /// Bytes a point takes in the form of `backend`.
    pub fn point_bytes(backend: Backend) -> usize {
        match backend {
            Backend::Ifma => size_of::<ifma::point_field::Row<C::Field>>(),
            Backend::Portable => size_of::<C::Affine>(),
        }
    }

    /// The points as they are in memory, to be kept in a file for this machine and this form of table.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Ifma(rows) => rows.as_bytes(),
            // SAFETY: an affine point of blst is its coordinates' limbs, without padding.
            Self::Portable(points) => unsafe {
                core::slice::from_raw_parts(points.as_ptr().cast(), size_of_val(&points[..]))
            },
        }
    }

    /// Replaces the table by `n` points, none the identity, which `fill` writes as [`Self::as_bytes`] gave them: anything
    /// else makes wrong sums. The memory is kept if it suffices. After an error the table is empty.
    ///
    /// # Safety
    /// If `fill` succeeds, it has written every byte.
    pub unsafe fn refill<E>(
        &mut self,
        n: usize,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            // SAFETY: the caller's.
            Self::Ifma(rows) => unsafe { rows.refill(n, fill) },
            // SAFETY: the caller's; limbs may be any bits.
            Self::Portable(points) => unsafe { refill(points, n, fill) },
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
            Self::Portable(points) => unsafe {
                let (rows, identities) = (C::as_points(points), &identities::<C>(points));
                pippenger::msm::<C, Portable>(Points { rows, identities }, indices, scalars)
            },
        }
    }

    /// Sum of the points i whose bit `bitmap[i / 64] >> (i % 64) & 1` is set. Bits past the table are ignored, missing
    /// words are zero.
    pub fn sum_selected(&self, bitmap: &[u64]) -> C::Projective {
        match self {
            // SAFETY: the table exists, so the instructions do.
            Self::Ifma(rows) => unsafe { select::sum_selected::<C, Ifma>(rows.points(), bitmap) },
            // SAFETY: scalar code runs anywhere.
            Self::Portable(points) => unsafe {
                let (rows, identities) = (C::as_points(points), &identities::<C>(points));
                select::sum_selected::<C, Portable>(Points { rows, identities }, bitmap)
            },
        }
    }
}

/// Scalars as blst sees them.
pub(crate) fn raw_scalars(scalars: &[Scalar]) -> &[blst_fr] {
    // SAFETY: `Scalar` is `repr(transparent)` over `blst_fr`.
    unsafe { core::slice::from_raw_parts(scalars.as_ptr().cast(), scalars.len()) }
}

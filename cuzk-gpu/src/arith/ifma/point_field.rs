//! What the curve code needs of a coordinate field, so that G1 (over Fq) and G2 (over Fq2) share one piece of code.

/// Eight elements of a coordinate field, one per lane.
///
/// Ranges are per component: "below 2.01p" of an Fq2 element means both its Fq components. *Raw* and *normalised* are
/// those of [`super::mont`].
///
/// # Safety
/// All methods need the AVX-512 features that this module is compiled for. Implementations give the stated ranges; the
/// bucket code relies on them without looking again.
pub unsafe trait PointField: Copy + Send + Sync + 'static {
    /// One element in memory: whole cache lines of limbs.
    type Row: Copy + Default + Send + Sync + PartialEq + core::fmt::Debug;
    /// blst's type of one element.
    type Blst: Copy + Default;

    /// One, canonical.
    unsafe fn one() -> Self;
    /// Lane l from row l. Any values.
    unsafe fn load_rows(rows: [*const Self::Row; 8]) -> Self;
    /// Lane l to row l.
    unsafe fn store_rows(self, rows: [*mut Self::Row; 8]);
    /// Eight blst elements, canonical.
    unsafe fn from_blst(elements: [*const Self::Blst; 8]) -> Self;
    /// Eight blst elements from any normalised value below 8p.
    unsafe fn to_blst(self) -> [Self::Blst; 8];

    /// `out` = a b, below 2.001p; raw or (`NORM`) normalised. Factors normalised, below 16p. Pointers may alias.
    unsafe fn mul<const NORM: bool>(out: *mut Self, a: *const Self, b: *const Self);
    /// `out` = a^2, below 2.001p; raw or (`NORM`) normalised. The factor is normalised, below 7p. Pointers may alias.
    unsafe fn sqr<const NORM: bool>(out: *mut Self, a: *const Self);
    /// 1/x, below 2.001p and normalised, or `None` if some lane is zero. Normalised x below 8p.
    unsafe fn invert(self) -> Option<Self>;

    /// Raw a + b.
    unsafe fn add_raw(self, b: Self) -> Self;
    /// Raw a - b.
    unsafe fn sub_raw(self, b: Self) -> Self;
    /// Raw a + K p.
    unsafe fn plus<const K: usize>(self) -> Self;
    /// Raw: a - K p where a is clearly above K p; what stays is below K p (1 + 2^-9).
    unsafe fn cut<const K: usize>(self) -> Self;
    /// Carries propagated.
    unsafe fn norm(self) -> Self;
    /// Raw negation in the lanes of `mask`.
    unsafe fn negate_lanes(self, mask: u8) -> Self;
    /// `b` in the lanes of `mask`.
    unsafe fn blend(self, mask: u8, b: Self) -> Self;
    /// Lanes that are 0 mod p. Raw values in 0..8p.
    unsafe fn zero_lanes(self) -> u8;
}

/// Forwards the methods of [`PointField`] that act limb by limb to inherent methods of the same name.
macro_rules! forward {
    ($($(#[$doc:meta])* fn $name:ident $(<const $K:ident: usize>)? ($($arg:ident: $T:ty),*) -> $R:ty;)*) => { $(
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
        unsafe fn $name $(<const $K: usize>)? (self $(, $arg: $T)*) -> $R {
            Self::$name $(::<$K>)? (self $(, $arg)*)
        }
    )* };
}
pub(super) use forward;

/// The forwarded part of an implementation.
macro_rules! forward_limbwise {
    () => {
        forward! {
            fn add_raw(b: Self) -> Self;
            fn sub_raw(b: Self) -> Self;
            fn plus<const K: usize>() -> Self;
            fn cut<const K: usize>() -> Self;
            fn norm() -> Self;
            fn negate_lanes(mask: u8) -> Self;
            fn blend(mask: u8, b: Self) -> Self;
            fn zero_lanes() -> u8;
        }
    };
}
pub(super) use forward_limbwise;

/// A point in a table: both coordinates, each on its own cache lines. Never the identity; see the users for flags.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub struct Row<F: PointField> {
    /// Affine x, normalised limbs below 2.01p (canonical in a table).
    pub x: F::Row,
    /// Affine y, likewise.
    pub y: F::Row,
}

impl<F: PointField> Default for Row<F> {
    /// All zero, which is no point: a place to be filled.
    fn default() -> Self {
        Self { x: F::Row::default(), y: F::Row::default() }
    }
}

//! The two groups, G1 and G2, as one trait: blstrs types outside, blst functions for scalar work, a vector field for IFMA.

use blst::*;
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

use crate::arith::ifma::point_field::PointField;
use crate::arith::ifma::{Fq, Fq2};

/// A group of BLS12-381 with everything that the generic algorithms need.
pub trait Curve: Copy + Send + Sync + 'static {
    /// Affine point of blstrs; `AsRef` gives blst's.
    type Affine: Copy + Default + Send + Sync + PartialEq + core::fmt::Debug;
    /// Projective point of blstrs.
    type Projective: Group<Scalar = Scalar> + for<'a> From<&'a Self::Affine> + Send + Sync;
    /// Eight coordinates.
    type Field: PointField;

    /// Pointers to both coordinates.
    fn coordinates(point: &Self::Affine) -> [*const <Self::Field as PointField>::Blst; 2];
    /// The point with these coordinates, which is known to be on the curve.
    fn from_coordinates(x: <Self::Field as PointField>::Blst, y: <Self::Field as PointField>::Blst) -> Self::Affine;
    /// Is it the point at infinity?
    fn is_identity(point: &Self::Affine) -> bool;
    /// sum + point, any points.
    fn add_affine(sum: &mut Self::Projective, point: &Self::Affine);
    /// All points in affine form, with one inversion.
    fn to_affine(points: &[Self::Projective]) -> Vec<Self::Affine>;
    /// Sum of points by blst's batched affine addition, on this thread. No identities, at least one point.
    fn sum(points: &[&Self::Affine]) -> Self::Projective;
    /// sum of scalar times point by blst's Pippenger, on this thread. No identities, at least one point; scalars are
    /// little-endian, below the group order.
    fn pippenger(points: &[&Self::Affine], scalars: &[blst_scalar]) -> Self::Projective;
}

/// The group over Fq.
#[derive(Clone, Copy, Debug)]
pub struct G1;

/// The group over Fq2.
#[derive(Clone, Copy, Debug)]
pub struct G2;

macro_rules! blst_curve {
    ($Group:ident, $Affine:ident, $Projective:ident, $Field:ident, $affine:ident, $projective:ident,
     $is_inf:ident, $add_affine:ident, $to_affine:ident, $sum:ident, $scratch:ident, $pippenger:ident) => {
        impl Curve for $Group {
            type Affine = $Affine;
            type Projective = $Projective;
            type Field = $Field;

            fn coordinates(point: &$Affine) -> [*const <$Field as PointField>::Blst; 2] {
                let point: &$affine = point.as_ref();
                [&raw const point.x, &raw const point.y]
            }

            fn from_coordinates(x: <$Field as PointField>::Blst, y: <$Field as PointField>::Blst) -> $Affine {
                let mut point = $Affine::default();
                *point.as_mut() = $affine { x, y };
                point
            }

            fn is_identity(point: &$Affine) -> bool {
                // SAFETY: a reference is a valid pointer.
                unsafe { $is_inf(point.as_ref()) }
            }

            fn add_affine(sum: &mut $Projective, point: &$Affine) {
                let out: *mut $projective = sum.as_mut();
                // SAFETY: references are valid pointers; blst allows the result in place of an operand.
                unsafe { $add_affine(out, out, point.as_ref()) }
            }

            fn to_affine(points: &[$Projective]) -> Vec<$Affine> {
                // blst's batch inversion does not allow for infinity.
                let finite: Vec<&$Projective> = points.iter().filter(|p| !bool::from(p.is_identity())).collect();
                let pointers: Vec<*const $projective> =
                    finite.iter().map(|p| core::ptr::from_ref(p.as_ref())).collect();
                let mut affine = vec![$affine::default(); finite.len()];
                if !finite.is_empty() {
                    // SAFETY: as many valid pointers and places as said.
                    unsafe { $to_affine(affine.as_mut_ptr(), pointers.as_ptr(), pointers.len()) };
                }
                let mut affine = affine.into_iter();
                let convert = |p: &$Projective| {
                    if bool::from(p.is_identity()) {
                        return $Affine::default();
                    }
                    let point = affine.next().expect("one for each finite point");
                    Self::from_coordinates(point.x, point.y)
                };
                points.iter().map(convert).collect()
            }

            fn sum(points: &[&$Affine]) -> $Projective {
                let mut sum = $Projective::identity();
                let pointers: Vec<*const $affine> = points.iter().map(|p| core::ptr::from_ref((*p).as_ref())).collect();
                // SAFETY: as many valid pointers as said.
                unsafe { $sum(sum.as_mut(), pointers.as_ptr(), pointers.len()) };
                sum
            }

            fn pippenger(points: &[&$Affine], scalars: &[blst_scalar]) -> $Projective {
                assert_eq!(points.len(), scalars.len());
                let mut sum = $Projective::identity();
                let pointers: Vec<*const $affine> = points.iter().map(|p| core::ptr::from_ref((*p).as_ref())).collect();
                let bytes: Vec<*const u8> = scalars.iter().map(|s| s.b.as_ptr()).collect();
                // SAFETY: as many valid pointers as said; the scratch has the size that blst asks for, in words.
                unsafe {
                    let mut scratch = vec![0; $scratch(points.len()).div_ceil(size_of::<limb_t>())];
                    $pippenger(
                        sum.as_mut(),
                        pointers.as_ptr(),
                        points.len(),
                        bytes.as_ptr(),
                        255,
                        scratch.as_mut_ptr(),
                    );
                }
                sum
            }
        }
    };
}

blst_curve!(
    G1,
    G1Affine,
    G1Projective,
    Fq,
    blst_p1_affine,
    blst_p1,
    blst_p1_affine_is_inf,
    blst_p1_add_or_double_affine,
    blst_p1s_to_affine,
    blst_p1s_add,
    blst_p1s_mult_pippenger_scratch_sizeof,
    blst_p1s_mult_pippenger
);
blst_curve!(
    G2,
    G2Affine,
    G2Projective,
    Fq2,
    blst_p2_affine,
    blst_p2,
    blst_p2_affine_is_inf,
    blst_p2_add_or_double_affine,
    blst_p2s_to_affine,
    blst_p2s_add,
    blst_p2s_mult_pippenger_scratch_sizeof,
    blst_p2s_mult_pippenger
);

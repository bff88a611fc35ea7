//! The two groups, G1 and G2, as one trait: blstrs types outside, blst functions for single points, and the
//! coordinate fields of both arithmetics.

use blst::*;
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;

use crate::arith::ifma::point_field::PointField;
use crate::arith::ifma::{Fq, Fq2};
use crate::arith::portable::coordinate::{Coordinate, Fq2 as ScalarFq2, Point};
use crate::arith::portable::fq::Fq as ScalarFq;

/// A group of BLS12-381 with everything that the generic algorithms need.
pub trait Curve: Copy + Send + Sync + 'static {
    /// Affine point of blstrs; `AsRef` gives blst's.
    type Affine: Copy + Default + Send + Sync + PartialEq + core::fmt::Debug;
    /// Projective point of blstrs.
    type Projective: Group<Scalar = Scalar> + for<'a> From<&'a Self::Affine> + Send + Sync;
    /// Eight coordinates.
    type Field: PointField;
    /// One coordinate, laid out as blst's.
    type Coordinate: Coordinate;

    /// Pointers to both coordinates.
    fn coordinates(point: &Self::Affine) -> [*const <Self::Field as PointField>::Blst; 2];
    /// The point with these coordinates, which is known to be on the curve.
    fn from_coordinates(x: <Self::Field as PointField>::Blst, y: <Self::Field as PointField>::Blst) -> Self::Affine;
    /// Points as scalar code sees them.
    fn as_points(points: &[Self::Affine]) -> &[Point<Self::Coordinate>];
    /// The point with these canonical coordinates, which is known to be on the curve.
    fn from_point(point: &Point<Self::Coordinate>) -> Self::Affine;
    /// Is it the point at infinity?
    fn is_identity(point: &Self::Affine) -> bool;
    /// sum + point, any points.
    fn add_affine(sum: &mut Self::Projective, point: &Self::Affine);
    /// All points in affine form, with one inversion.
    fn to_affine(points: &[Self::Projective]) -> Vec<Self::Affine>;
}

/// The group over Fq.
#[derive(Clone, Copy, Debug)]
pub struct G1;

/// The group over Fq2.
#[derive(Clone, Copy, Debug)]
pub struct G2;

macro_rules! blst_curve {
    ($Group:ident, $Affine:ident, $Projective:ident, $Field:ident, $affine:ident, $projective:ident,
     $Coordinate:ident, $is_inf:ident, $add_affine:ident, $to_affine:ident) => {
        impl Curve for $Group {
            type Affine = $Affine;
            type Projective = $Projective;
            type Field = $Field;
            type Coordinate = $Coordinate;

            fn coordinates(point: &$Affine) -> [*const <$Field as PointField>::Blst; 2] {
                let point: &$affine = point.as_ref();
                [&raw const point.x, &raw const point.y]
            }

            fn from_coordinates(x: <$Field as PointField>::Blst, y: <$Field as PointField>::Blst) -> $Affine {
                let mut point = $Affine::default();
                *point.as_mut() = $affine { x, y };
                point
            }

            fn as_points(points: &[$Affine]) -> &[Point<$Coordinate>] {
                const { assert!(size_of::<$Affine>() == size_of::<Point<$Coordinate>>()) };
                // SAFETY: both are the limbs of x, then those of y, and any limbs are valid.
                unsafe { core::slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
            }

            fn from_point(point: &Point<$Coordinate>) -> $Affine {
                // SAFETY: as above.
                unsafe { core::mem::transmute_copy(point) }
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
    ScalarFq,
    blst_p1_affine_is_inf,
    blst_p1_add_or_double_affine,
    blst_p1s_to_affine
);
blst_curve!(
    G2,
    G2Affine,
    G2Projective,
    Fq2,
    blst_p2_affine,
    blst_p2,
    ScalarFq2,
    blst_p2_affine_is_inf,
    blst_p2_add_or_double_affine,
    blst_p2s_to_affine
);

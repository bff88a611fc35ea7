//! The last sums, on the CPU: a few hundred points with powers of two as weights.

use blst::{
    blst_fp, blst_fp_mul, blst_fp2, blst_fp2_mul, blst_p1, blst_p1_add_or_double, blst_p1_double, blst_p2,
    blst_p2_add_or_double, blst_p2_double,
};
use blstrs::{G1Projective, G2Projective};

use group::Group as _;
use rayon::prelude::*;

use super::reduction::Group;
use crate::arith::{Curve, G1, G2};

/// A group whose sums the kernels make.
pub trait DeviceCurve: Curve {
    /// Bytes of an affine point.
    const POINT_BYTES: usize;
    /// What the names of its kernels end with.
    const SUFFIX: &str;
    /// A query's sum: its groups' sums, points in XYZZ coordinates, by the groups' weights.
    fn fold(sums: &[u8], groups: &[Group], query: usize) -> Self::Projective;
}

macro_rules! device_curve {
    ($Group:ident, $Projective:ident, $point:ident, $field:ident, $bytes:literal, $suffix:literal, $mul:ident, $add:ident,
     $double:ident) => {
        impl DeviceCurve for $Group {
            const POINT_BYTES: usize = $bytes;
            const SUFFIX: &str = $suffix;

            fn fold(sums: &[u8], groups: &[Group], query: usize) -> $Projective {
                assert_eq!(sums.len(), groups.len() * 2 * $bytes, "one XYZZ point a group");
                let all: Vec<_> = sums.chunks_exact(2 * $bytes).zip(groups).filter(|(_, g)| g.query == query).collect();
                // Parts of a sum stand next to each other.
                let runs: Vec<_> = all.chunk_by(|a, b| a.1.weight == b.1.weight).collect();
                let add = |sum: &mut $point, point: &$point| {
                    // SAFETY: references are valid pointers; blst allows the result in place of an operand.
                    unsafe { $add(sum, sum, point) };
                };
                let run_sum = |run: &&[(&[u8], &Group)]| {
                    let mut sum = $point::default();
                    for (bytes, _) in run.iter() {
                        // SAFETY: the slice has four elements, which are plain numbers; the read need not be aligned.
                        let coordinates = unsafe { bytes.as_ptr().cast::<[$field; 4]>().read_unaligned() };
                        let [x, y, zz, zzz] = coordinates;
                        // With Z = ZZ as the denominator: x = X ZZ / Z^2, and y = Y ZZZ / Z^3 since ZZ^3 = ZZZ^2.
                        let mut point = $point { x, y, z: zz };
                        // SAFETY: references are valid pointers.
                        unsafe {
                            $mul(&mut point.x, &x, &zz);
                            $mul(&mut point.y, &y, &zzz);
                        }
                        add(&mut sum, &point);
                    }
                    (sum, run[0].1.weight)
                };
                let mut bits: Vec<$point> = Vec::new();
                for (sum, weight) in runs.par_iter().map(run_sum).collect::<Vec<_>>() {
                    for bit in (0..u32::BITS).filter(|bit| weight.factor >> bit & 1 == 1) {
                        let bit = (weight.shift + bit) as usize;
                        if bits.len() <= bit {
                            bits.resize(bit + 1, $point::default());
                        }
                        add(&mut bits[bit], &sum);
                    }
                }
                let mut total = $point::default();
                for point in bits.iter().rev() {
                    // SAFETY: references are valid pointers; blst allows the result in place of an operand.
                    unsafe { $double(&mut total, &total) };
                    add(&mut total, point);
                }
                let mut sum = $Projective::identity();
                *sum.as_mut() = total;
                sum
            }
        }
    };
}

device_curve!(G1, G1Projective, blst_p1, blst_fp, 96, "g1", blst_fp_mul, blst_p1_add_or_double, blst_p1_double);
device_curve!(G2, G2Projective, blst_p2, blst_fp2, 192, "g2", blst_fp2_mul, blst_p2_add_or_double, blst_p2_double);

#[cfg(test)]
mod tests {
    use blstrs::Scalar;
    use group::Group as _;
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;
    use crate::cuda::msm::reduction::{ALL, Weight};

    #[test]
    fn weights_are_honoured() {
        let mut rng = StdRng::seed_from_u64(3);
        let weights = [(1, 0), (5, 3), (1, 254), (7, 3), (1, 20)];
        let points: Vec<G1Projective> = weights.iter().map(|_| G1Projective::random(&mut rng)).collect();
        let mut sums = Vec::new();
        let groups: Vec<Group> = weights
            .iter()
            .map(|&(factor, shift)| {
                let weight = Weight { factor, shift };
                Group { query: 0, source: 0, first: 0, end: 1, bit: ALL, weight }
            })
            .collect();
        for point in &points {
            // From (X, Y, Z) to (X, Y, Z^2, Z^3).
            let point: &blst_p1 = point.as_ref();
            let (mut zz, mut zzz) = (blst_fp::default(), blst_fp::default());
            // SAFETY: references are valid pointers.
            unsafe {
                blst_fp_mul(&mut zz, &point.z, &point.z);
                blst_fp_mul(&mut zzz, &zz, &point.z);
            }
            for element in [point.x, point.y, zz, zzz] {
                sums.extend(element.l.iter().flat_map(|limb| limb.to_le_bytes()));
            }
        }
        // The identity, as the kernels write it.
        sums[2 * 192..3 * 192].fill(0);
        let two = Scalar::from(2);
        let expected: G1Projective = points
            .iter()
            .zip(weights)
            .enumerate()
            .filter(|(i, _)| *i != 2)
            .map(|(_, (point, (factor, shift)))| {
                let power = (0..shift).fold(Scalar::from(u64::from(factor)), |power, _| power * two);
                point * power
            })
            .sum();
        assert_eq!(G1::fold(&sums, &groups, 0), expected);
        assert_eq!(G1::fold(&sums, &groups, 1), G1Projective::identity());
    }
}

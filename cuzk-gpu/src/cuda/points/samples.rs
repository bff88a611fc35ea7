//! Points as a parameter file could hold them, good and bad, and what is to become of them.

use std::slice;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::{Curve as _, Group as _, prime::PrimeCurveAffine as _};
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use super::{Checks, PointFault};
use crate::{
    arith::{Curve, G1, G2, primes},
    cuda::msm::DeviceCurve,
};

/// One point.
pub(super) struct Sample {
    /// As a file holds it.
    pub(super) bytes: Vec<u8>,
    /// As kernels want it. Nothing is expected of a wrong encoding.
    pub(super) converted: Option<Vec<u8>>,
    /// What is wrong with it.
    pub(super) fault: Option<PointFault>,
}

impl Sample {
    /// What these checks find.
    pub(super) fn found_by(&self, checks: Checks) -> Option<PointFault> {
        self.fault.filter(|fault| match fault {
            PointFault::Encoding => true,
            PointFault::Identity => checks.no_identity,
            PointFault::Curve => checks.curve || checks.subgroup,
            PointFault::Subgroup => checks.subgroup,
        })
    }
}

/// Which checks to try.
pub(super) const COMBINATIONS: [Checks; 4] = [
    Checks { no_identity: false, curve: false, subgroup: false },
    Checks::FILE,
    Checks { no_identity: true, curve: true, subgroup: true },
    Checks { no_identity: false, curve: false, subgroup: true },
];

/// What samples need of a group.
pub(super) trait Sampled: DeviceCurve {
    /// A big-endian number such that a multiple of any point of the curve by it is of small order, or the identity.
    const TO_SMALL_ORDER: &[u8];

    fn random(rng: &mut ChaCha8Rng) -> Self::Affine;
    fn bytes(point: &Self::Affine) -> Vec<u8>;
    /// A point of the curve, with an x whose bytes are these, if there is one.
    fn with_x(bytes: &[u8]) -> Option<Self::Affine>;
    fn in_group(point: &Self::Affine) -> bool;
    /// By double and add, which is right for points of any order.
    fn multiple(point: &Self::Affine, factor: &[u8]) -> Self::Affine;
}

macro_rules! sampled {
    ($group:ident, $affine:ident, $projective:ident, $to_small_order:expr) => {
        impl Sampled for $group {
            const TO_SMALL_ORDER: &[u8] = &$to_small_order;

            fn random(rng: &mut ChaCha8Rng) -> $affine {
                $projective::random(rng).to_affine()
            }

            fn bytes(point: &$affine) -> Vec<u8> {
                point.to_uncompressed().to_vec()
            }

            fn with_x(bytes: &[u8]) -> Option<$affine> {
                let mut compressed = <[u8; Self::POINT_BYTES / 2]>::try_from(bytes).ok()?;
                compressed[0] = compressed[0] & 0x1f | 0x80;
                Option::<$affine>::from($affine::from_compressed_unchecked(&compressed))
                    .filter(|point| bool::from(point.is_on_curve()))
            }

            fn in_group(point: &$affine) -> bool {
                point.is_torsion_free().into()
            }

            fn multiple(point: &$affine, factor: &[u8]) -> $affine {
                let bits = factor.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
                let add = |sum: $projective, bit| sum.double() + if bit { *point } else { $affine::identity() };
                bits.fold($projective::identity(), add).to_affine()
            }
        }
    };
}

// r times the cofactor over 11^2: both factors of 11 are of order 11.
sampled!(
    G1,
    G1Affine,
    G1Projective,
    [
        0x37, 0x04, 0x61, 0x24, 0x71, 0x30, 0x73, 0x85, 0xe8, 0xf4, 0xb1, 0x1c, 0x0f, 0x6f, 0x71, 0xe9, 0x8e, 0xbc,
        0xeb, 0xf1, 0x16, 0x41, 0xbd, 0xe1, 0x1e, 0x05, 0xf8, 0xde, 0x12, 0x63, 0x5b, 0x46, 0x12, 0x58, 0xdc, 0x05,
        0xb2, 0x69, 0xc8, 0xff, 0x0a, 0x94, 0x19, 0x63, 0x70, 0x23, 0x43,
    ]
);
// r times the cofactor over 13^2.
sampled!(
    G2,
    G2Affine,
    G2Projective,
    [
        0x04, 0x00, 0x54, 0x49, 0xcd, 0xa7, 0x31, 0xa7, 0x13, 0x6c, 0x44, 0x0a, 0x0c, 0x65, 0xb7, 0x28, 0xba, 0x1c,
        0x1f, 0xa6, 0xb6, 0x70, 0x83, 0x56, 0xf3, 0xb9, 0xbd, 0xc8, 0x43, 0x96, 0xca, 0xb3, 0x39, 0x07, 0xd7, 0x15,
        0x57, 0xa7, 0xd3, 0x36, 0x77, 0xf5, 0xd4, 0x5f, 0x7c, 0xed, 0xb8, 0xcf, 0xda, 0xc1, 0x0f, 0xf1, 0xfc, 0x5b,
        0x48, 0xd6, 0x46, 0x1e, 0x90, 0x77, 0x37, 0xd7, 0x8e, 0x96, 0x56, 0x8f, 0x2d, 0x18, 0xc7, 0x50, 0xb4, 0xb3,
        0xca, 0x5c, 0x33, 0xc3, 0xfd, 0x8f, 0xf8, 0xa7, 0x06, 0x29, 0x88, 0x82, 0x81, 0x91, 0x45, 0x29, 0xf4, 0xe3,
        0x38, 0x09, 0x41, 0xcf, 0xdd,
    ]
);

/// The point as blst keeps it, which is what kernels take.
fn converted<C: Curve>(point: &C::Affine) -> Vec<u8> {
    C::coordinates(point)
        .into_iter()
        .flat_map(|coordinate| {
            // SAFETY: the pointer is to a coordinate, which is plain numbers.
            unsafe { slice::from_raw_parts(coordinate.cast::<u8>(), size_of_val(&*coordinate)) }.to_vec()
        })
        .collect()
}

/// `count` points, of which about one in `good` is bad.
pub(super) fn samples<C: Sampled>(rng: &mut ChaCha8Rng, count: usize, good: u32) -> Vec<Sample> {
    let few: Vec<C::Affine> = (0..16).map(|_| C::random(rng)).collect();
    (0..count)
        .map(|_| match rng.gen_ratio(1, good) {
            false => sample::<C>(&few[rng.gen_range(0..few.len())], None),
            true => bad::<C>(rng),
        })
        .collect()
}

fn sample<C: Sampled>(point: &C::Affine, fault: Option<PointFault>) -> Sample {
    Sample { bytes: C::bytes(point), converted: Some(converted::<C>(point)), fault }
}

fn bad<C: Sampled>(rng: &mut ChaCha8Rng) -> Sample {
    match rng.gen_range(0..8) {
        0 => sample::<C>(&C::Affine::default(), Some(PointFault::Identity)),
        1 => {
            // y + 1 or y - 1: no other point has this x.
            let mut bytes = C::bytes(&C::random(rng));
            *bytes.last_mut().expect("points have bytes") ^= 1;
            Sample { bytes, converted: None, fault: Some(PointFault::Curve) }
        }
        2 | 3 => sample::<C>(&outside::<C>(rng), Some(PointFault::Subgroup)),
        4 => loop {
            let point = C::multiple(&outside::<C>(rng), C::TO_SMALL_ORDER);
            if !C::is_identity(&point) {
                return sample::<C>(&point, Some(PointFault::Subgroup));
            }
        },
        kind => Sample { bytes: misencoded::<C>(rng, kind), converted: None, fault: Some(PointFault::Encoding) },
    }
}

/// A point of the curve that is not in the group.
fn outside<C: Sampled>(rng: &mut ChaCha8Rng) -> C::Affine {
    loop {
        let mut bytes = vec![0; C::POINT_BYTES / 2];
        // Now and then an x of few bytes.
        let zeros = if rng.gen_ratio(1, 4) { bytes.len() - 1 } else { 0 };
        rng.fill_bytes(&mut bytes[zeros..]);
        if let Some(point) = C::with_x(&bytes).filter(|point| !C::in_group(point)) {
            return point;
        }
    }
}

fn misencoded<C: Sampled>(rng: &mut ChaCha8Rng, kind: u32) -> Vec<u8> {
    let mut bytes = C::bytes(&C::random(rng));
    let any = rng.gen_range(1..bytes.len());
    match (kind, rng.gen_range(0..4)) {
        (5, flag @ 0..3) => bytes[0] |= 0x20 << flag,
        (5, _) => bytes.fill(0),
        // The identity, but for one bit.
        (6, _) => {
            bytes.fill(0);
            bytes[0] = 0x40;
            bytes[any] = 1;
        }
        // A coordinate of p, or of the largest number.
        (_, ones) => {
            let at = rng.gen_range(0..bytes.len() / 48) * 48;
            let p = primes::Q.iter().rev().flat_map(|limb| limb.to_be_bytes());
            bytes[at..at + 48].iter_mut().zip(p).for_each(|(byte, p)| *byte = if ones == 0 { 0xff } else { p });
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// blst's own reader accepts what is neither misencoded nor off the curve.
    #[test]
    fn samples_are_what_they_say() {
        let seed = rand::thread_rng().r#gen();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for sample in samples::<G1>(&mut rng, 200, 1) {
            let bytes = sample.bytes.clone().try_into().expect("96 bytes");
            let compressed = sample.bytes[0] & 0x80 != 0;
            let read = Option::<G1Affine>::from(G1Affine::from_uncompressed_unchecked(&bytes));
            let refused = matches!(sample.fault, Some(PointFault::Encoding | PointFault::Curve));
            assert!(compressed || read.is_none() == refused, "seed {seed}: {:?} of {bytes:x?}", sample.fault);
        }
    }
}

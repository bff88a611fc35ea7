//! Many multiples of one point, as the generation of Groth16 parameters needs them.

use blstrs::{G1Affine, G2Affine, Scalar};

use crate::arith::backend::Backend;
use crate::arith::curve::{Curve, G1, G2};
use crate::arith::ifma::Ifma;
use crate::arith::msm::fixed::multiples;
use crate::arith::portable::Portable;
use crate::arith::table::raw_scalars;

/// `scalars[i]` times `base`, in affine form; a zero scalar gives the identity.
///
/// For n scalars about ceil(255/c) (n + 2^(c-1)) batched affine additions with the best c (16 per scalar for 2^16 of
/// them), against some 255 doublings and additions each.
pub fn fixed_base<C: Curve>(backend: Backend, base: &C::Affine, scalars: &[Scalar]) -> Vec<C::Affine> {
    match backend.checked() {
        // SAFETY: `checked` saw the instructions.
        Backend::Ifma => unsafe { multiples::<C, Ifma>(base, raw_scalars(scalars)) },
        // SAFETY: scalar code runs anywhere.
        Backend::Portable => unsafe { multiples::<C, Portable>(base, raw_scalars(scalars)) },
    }
}

/// [`fixed_base`] in G1 with [`Backend::current`].
pub fn fixed_base_g1(base: &G1Affine, scalars: &[Scalar]) -> Vec<G1Affine> {
    fixed_base::<G1>(Backend::current(), base, scalars)
}

/// [`fixed_base`] in G2 with [`Backend::current`].
pub fn fixed_base_g2(base: &G2Affine, scalars: &[Scalar]) -> Vec<G2Affine> {
    fixed_base::<G2>(Backend::current(), base, scalars)
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use group::Group;
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    fn check<C: Curve>(sizes: &[usize]) {
        let mut rng = StdRng::seed_from_u64(10);
        let base = C::to_affine(&[C::Projective::random(&mut rng)])[0];
        for &n in sizes {
            let mut scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
            let special =
                [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2).invert().unwrap(), Scalar::from(16)];
            for (scalar, special) in scalars.iter_mut().skip(1).zip(special) {
                *scalar = special;
            }
            let expected: Vec<C::Projective> = scalars.iter().map(|s| C::Projective::from(&base) * s).collect();
            let expected = C::to_affine(&expected);
            for backend in Backend::available() {
                assert!(fixed_base::<C>(backend, &base, &scalars) == expected, "{backend:?}, {n} scalars");
                let nothing = fixed_base::<C>(backend, &C::Affine::default(), &scalars);
                assert!(nothing.iter().all(C::is_identity));
            }
        }
    }

    #[test]
    fn multiples_equal_scalar_multiplication() {
        check::<G1>(&[0, 1, 2, 9, 100, 3000]);
        check::<G2>(&[1, 7, 300]);
    }
}

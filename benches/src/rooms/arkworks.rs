//! arkworks on the same inputs: H by its radix-2 domain, multi-scalar multiplication by its Pippenger, both parallel.

use anyhow::{Context, Result};
use ark_bls12_381::{Fq, Fq2, Fr, G1Projective as ArkG1, G2Projective as ArkG2};
use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{FftField, Field, PrimeField};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use blstrs::{G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;

/// A group that arkworks has too.
pub(super) trait ArkCurve: PrimeCurveAffine<Scalar = Scalar> {
    /// Its group.
    type Ark: CurveGroup<ScalarField = Fr> + VariableBaseMSM;

    /// The same point there.
    fn to_ark(&self) -> <Self::Ark as CurveGroup>::Affine;

    /// The sum, ready to be computed.
    fn ark_msm(points: &[Self], scalars: &[Scalar]) -> impl FnMut() -> Self::Ark + 'static {
        let points: Vec<_> = points.iter().map(Self::to_ark).collect();
        let scalars: Vec<_> = scalars.iter().map(scalar).collect();
        move || Self::Ark::msm(&points, &scalars).expect("lengths are equal")
    }

    /// Whether two points are the same.
    fn ark_equals(theirs: &Self::Ark, ours: &Self) -> bool {
        theirs.into_affine() == ours.to_ark()
    }
}

impl ArkCurve for G1Affine {
    type Ark = ArkG1;

    fn to_ark(&self) -> ark_bls12_381::G1Affine {
        if bool::from(self.is_identity()) {
            return ark_bls12_381::G1Affine::identity();
        }
        let bytes = self.to_uncompressed();
        ark_bls12_381::G1Affine::new_unchecked(coordinate(&bytes[..48]), coordinate(&bytes[48..]))
    }
}

impl ArkCurve for G2Affine {
    type Ark = ArkG2;

    fn to_ark(&self) -> ark_bls12_381::G2Affine {
        if bool::from(self.is_identity()) {
            return ark_bls12_381::G2Affine::identity();
        }
        // The imaginary part goes first.
        let bytes = self.to_uncompressed();
        let part = |i: usize| coordinate(&bytes[48 * i..48 * (i + 1)]);
        ark_bls12_381::G2Affine::new_unchecked(Fq2::new(part(1), part(0)), Fq2::new(part(3), part(2)))
    }
}

/// A coordinate from its 48 bytes, big end first.
fn coordinate(bytes: &[u8]) -> Fq {
    Fq::from_be_bytes_mod_order(bytes)
}

fn scalar(scalar: &Scalar) -> Fr {
    Fr::from_le_bytes_mod_order(&scalar.to_bytes_le())
}

/// H as arkworks' own Groth16 prover computes it: three inverse transforms, three on a coset, one back.
pub(super) fn quotient(a: &[Scalar], b: &[Scalar], c: &[Scalar]) -> Result<impl FnMut() -> Vec<Fr> + 'static> {
    let domain = Radix2EvaluationDomain::<Fr>::new(a.len()).context("a domain of that size")?;
    let coset = domain.get_coset(Fr::GENERATOR).context("the generator is not zero")?;
    let vanishing = domain.evaluate_vanishing_polynomial(Fr::GENERATOR).inverse().context("it vanishes on no coset")?;
    let vectors = [a, b, c].map(|values| values.iter().map(scalar).collect::<Vec<Fr>>());
    Ok(move || {
        let [mut a, b, c] = vectors.clone().map(|mut values| {
            domain.ifft_in_place(&mut values);
            coset.fft_in_place(&mut values);
            values
        });
        for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
            *a = (*a * b - c) * vanishing;
        }
        coset.ifft_in_place(&mut a);
        a.pop();
        a
    })
}

/// Whether both are the same scalars.
pub(super) fn scalars_equal(theirs: &[Fr], ours: &[Scalar]) -> bool {
    theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| *theirs == scalar(ours))
}

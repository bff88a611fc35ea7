//! Elements of Fr in the forms that kernels take: eight words of 32 bits, little-endian.

use blst::blst_fr;
use blstrs::Scalar;
use ff::PrimeField;

/// An element, in Montgomery form (R = 2^256, blst's) or in plain form (the canonical number).
pub type Element = [u32; 8];

/// Montgomery form.
pub fn montgomery(value: &Scalar) -> Element {
    words(blst_fr::from(*value).l)
}

/// The element of this Montgomery form. `None` if the number is not below r.
pub fn from_montgomery(element: Element) -> Option<Scalar> {
    // Montgomery form of x is the plain form of x R.
    Some(from_plain(element)? * r_inverse())
}

/// Plain form.
pub fn plain(value: &Scalar) -> Element {
    let bytes = value.to_repr();
    std::array::from_fn(|i| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]))
}

/// The element of this plain form. `None` if the number is not below r.
pub fn from_plain(element: Element) -> Option<Scalar> {
    let mut bytes = [0; 32];
    for (to, word) in bytes.chunks_exact_mut(4).zip(element) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Scalar::from_repr_vartime(bytes)
}

/// R = 2^256 as an element.
pub fn r() -> Scalar {
    (0..256).fold(ff::Field::ONE, |power: Scalar, _| ff::Field::double(&power))
}

fn r_inverse() -> Scalar {
    let half = Scalar::TWO_INV;
    (0..256).fold(ff::Field::ONE, |power: Scalar, _| power * half)
}

fn words(limbs: [u64; 4]) -> Element {
    std::array::from_fn(|i| (limbs[i / 2] >> (32 * (i % 2))) as u32)
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn forms_and_back() {
        let mut rng = StdRng::seed_from_u64(5);
        for value in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::random(&mut rng)] {
            assert_eq!(from_plain(plain(&value)), Some(value));
            assert_eq!(from_montgomery(montgomery(&value)), Some(value));
            assert_eq!(montgomery(&value), plain(&(value * r())));
        }
        assert_eq!(plain(&Scalar::from(7)), [7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(from_plain([u32::MAX; 8]), None);
    }
}

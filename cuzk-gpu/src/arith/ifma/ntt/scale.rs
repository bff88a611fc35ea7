//! Powers of a number in bit-reversed order: position p = 8 v + l holds g^bitrev(p).

use blstrs::Scalar;
use ff::Field;

use super::super::fr::Fr;
use super::reverse_bits;

/// factor * g^bitrev(p) for any position p, by two small tables.
///
/// bitrev(8 v + l) = bitrev3(l) n/8 + bitrev(v), and bitrev(v) is the sum of those of the high and the low half of v.
pub struct ReversedPowers {
    /// Lane l: factor g^(bitrev3(l) n/8).
    lanes: Fr,
    /// g^bitrev(v) for v = low.
    low: Vec<Fr>,
    /// g^bitrev(v) for v = high << low_bits.
    high: Vec<Fr>,
    low_bits: u32,
    /// The factor in all lanes.
    pub factor: Fr,
}

impl ReversedPowers {
    /// Tables for positions below 2^log_n.
    ///
    /// # Safety
    /// The machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub unsafe fn new(g: Scalar, factor: Scalar, log_n: u32) -> Self {
        let vector_bits = log_n - 3;
        let low_bits = vector_bits / 2;
        // squares[k] = g^(2^k)
        let squares: Vec<Scalar> = core::iter::successors(Some(g), |g| Some(g.square())).take(log_n as usize).collect();
        let power = |e: usize| {
            (0..log_n as usize).filter(|k| e >> k & 1 == 1).fold(Scalar::ONE, |product, k| product * squares[k])
        };
        let table = |shift: u32, bits: u32| -> Vec<Fr> {
            let mut table = vec![Scalar::ONE];
            for k in 0..bits {
                let step = squares[(vector_bits - 1 - shift - k) as usize];
                table.extend_from_within(..);
                let half = table.len() / 2;
                table[half..].iter_mut().for_each(|t| *t *= step);
            }
            table.into_iter().map(|t| Fr::splat_blst(&t.into())).collect()
        };
        let lanes: [Scalar; 8] = core::array::from_fn(|l| factor * power(reverse_bits(l, 3) << vector_bits));
        Self {
            // SAFETY: eight elements.
            lanes: unsafe { Fr::from_blst(lanes.as_ptr().cast()) },
            low: table(0, low_bits),
            high: table(low_bits, vector_bits - low_bits),
            low_bits,
            factor: Fr::splat_blst(&factor.into()),
        }
    }

    /// The powers of vector v, normalised, below 2.07r. Two products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn of_vector(&self, v: usize) -> Fr {
        let (high, low) = (v >> self.low_bits, v & ((1 << self.low_bits) - 1));
        Fr::mul(&Fr::mul(&self.lanes, &self.high[high]), &self.low[low])
    }
}

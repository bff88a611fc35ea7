//! Sums and differences of N limbs, brought back into range by one subtraction of a multiple of p.
//!
//! The multiple is looked up by the leading bits of the number: with T(i) = floor(i g / p) p, a number in
//! i g .. (i + 1) g minus T(i) lies in 0 .. p + g. No comparison, no branch, and one pass over the limbs whether the
//! number was near p, 4p or -3p.

use core::arch::x86_64::{_addcarry_u64, _subborrow_u64};

/// a + b and the carry.
#[inline(always)]
pub fn add<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], u8) {
    let mut sum = [0; N];
    let mut carry = 0;
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        carry = _addcarry_u64(carry, *a, *b, sum);
    }
    (sum, carry)
}

/// a - b modulo 2^(64 N) and the borrow.
#[inline(always)]
pub fn sub<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], u8) {
    let mut difference = [0; N];
    let mut borrow = 0;
    for ((difference, a), b) in difference.iter_mut().zip(a).zip(b) {
        borrow = _subborrow_u64(borrow, *a, *b, difference);
    }
    (difference, borrow)
}

/// T(i) for -16 <= i < 32 at place i + 16, with g = 2^(64 N - 4), modulo 2^(64 N).
pub type Multiples<const N: usize> = [[u64; N]; 48];

/// The table of multiples of a prime whose top limb is not zero.
pub const fn multiples<const N: usize>(p: &[u64; N]) -> Multiples<N> {
    let mut table = [[0; N]; 48];
    let mut place = 0;
    while place < 48 {
        // The top limbs decide: no multiple of g up to 32 g is so close to one of p that lower limbs would matter.
        let count = (((place as i128) - 16) << 60).div_euclid(p[N - 1] as i128);
        let mut carry = 0i128;
        let mut i = 0;
        while i < N {
            let t = carry + count * p[i] as i128;
            table[place][i] = t as u64;
            carry = t >> 64;
            i += 1;
        }
        place += 1;
    }
    table
}

/// The number `limbs` + 2^(64 N) `high` modulo p, below p + g, for a number in -16 g .. 32 g.
#[inline(always)]
pub fn reduce<const N: usize>(limbs: &[u64; N], high: i64, multiples: &Multiples<N>) -> [u64; N] {
    let place = (high << 4) + (limbs[N - 1] >> 60) as i64 + 16;
    debug_assert!((0..48).contains(&place));
    sub(limbs, &multiples[place as usize]).0
}

/// a + b modulo p, below p + g.
#[inline(always)]
pub fn sum<const N: usize>(a: &[u64; N], b: &[u64; N], multiples: &Multiples<N>) -> [u64; N] {
    let (sum, carry) = add(a, b);
    reduce(&sum, carry.into(), multiples)
}

/// a - b modulo p, below p + g.
#[inline(always)]
pub fn difference<const N: usize>(a: &[u64; N], b: &[u64; N], multiples: &Multiples<N>) -> [u64; N] {
    let (difference, borrow) = sub(a, b);
    reduce(&difference, -i64::from(borrow), multiples)
}

/// A number below 2p modulo p.
#[inline(always)]
pub fn canonical<const N: usize>(a: &[u64; N], p: &[u64; N]) -> [u64; N] {
    match sub(a, p) {
        (_, 1) => *a,
        (reduced, _) => reduced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// i g - T(i) lies in 0..p, for every row.
    fn check<const N: usize>(p: &[u64; N]) {
        for (place, multiple) in multiples(p).iter().enumerate() {
            // i g modulo 2^(64 N): the differences are far from overflowing.
            let mut start = [0; N];
            start[N - 1] = (place as u64).wrapping_sub(16) << 60;
            let (rest, _) = sub(&start, multiple);
            assert_eq!(sub(&rest, p).1, 1, "place {place}: below p");
            assert_eq!(reduce(&start, (place as i64 - 16) >> 4, &multiples(p)), rest);
        }
    }

    #[test]
    fn multiples_bring_everything_into_range() {
        check(&super::super::fq::MODULUS.prime);
        check(&super::super::fr::MODULUS.prime);
    }
}

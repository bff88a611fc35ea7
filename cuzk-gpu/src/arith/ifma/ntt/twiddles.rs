//! Twiddle factors in bit-reversed order.

use std::sync::{Arc, OnceLock};

use blst::blst_fr;
use blstrs::Scalar;
use core::arch::x86_64::*;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::super::fr::Fr;
use super::super::lane::{each, splat};
use crate::arith::memory::huge_vec;

/// `table[g]` = w^-bitrev(g) for g < n/2, w of order n: the factor of group g in *every* layer of both transforms.
///
/// Bit k of g stands for the exponent n / 2^(k+2), so the table of a smaller size is the front of that of a larger one.
pub struct Twiddles {
    /// Canonical; vector v holds g = 8 v .. 8 v + 8.
    vectors: Vec<Fr>,
}

impl Twiddles {
    /// The table for size 2^log_n, computed once per process. 20 bytes per element of the size.
    ///
    /// # Safety
    /// The machine has the AVX-512 features.
    pub unsafe fn shared(log_n: u32) -> Arc<Self> {
        static TABLES: [OnceLock<Arc<Twiddles>>; Scalar::S as usize + 1] =
            [const { OnceLock::new() }; Scalar::S as usize + 1];
        // SAFETY: the caller's.
        TABLES[log_n as usize].get_or_init(|| Arc::new(unsafe { Self::new(log_n) })).clone()
    }

    unsafe fn new(log_n: u32) -> Self {
        let table_bits = log_n - 1;
        // roots[k] = w^-(n / 2^(k+2)): of order 2^(k+2).
        let roots: Vec<Scalar> = (0..table_bits)
            .map(|k| (k + 2..Scalar::S).fold(Scalar::ROOT_OF_UNITY.invert().expect("not zero"), |w, _| w.square()))
            .collect();
        let mut first = [Scalar::ONE; 8];
        for k in 0..3 {
            for i in 0..1 << k {
                first[(1 << k) + i] = first[i] * roots[k];
            }
        }
        let count = 1usize << (table_bits - 3);
        let mut vectors: Vec<Fr> = huge_vec(count);
        // SAFETY: the caller vouches for the features; eight elements, and room for one vector.
        unsafe {
            canonical_to(first.as_ptr().cast(), vectors.spare_capacity_mut()[0].as_mut_ptr());
            vectors.set_len(1);
        }
        for root in &roots[3..] {
            let (done, rest) = (vectors.len(), vectors.spare_capacity_mut());
            let new = rest.as_mut_ptr().cast::<Fr>();
            // SAFETY: there is room for `count` vectors; the front half is written, the next part is written here.
            unsafe {
                let front = core::slice::from_raw_parts(new.sub(done), done);
                let back = core::slice::from_raw_parts_mut(rest.as_mut_ptr(), done);
                back.par_chunks_mut(1 << 10).zip(front.par_chunks(1 << 10)).for_each(|(to, from)| {
                    multiply(from, to.as_mut_ptr().cast(), root);
                });
                vectors.set_len(2 * done);
            }
        }
        Self { vectors }
    }

    /// Factor g in all lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn splat(&self, g: usize) -> Fr {
        let limbs = (&raw const self.vectors[g / 8]).cast::<u64>();
        let mut w = Fr::zero();
        each!(I, 5, {
            // SAFETY: lane g % 8 of limb I.
            w.0[I] = unsafe { splat(*limbs.add(8 * I + g % 8)) };
        });
        w
    }

    /// Factors 8 m .. 8 m + 8: those of eight consecutive groups.
    #[inline]
    pub fn eight(&self, m: usize) -> &Fr {
        &self.vectors[m]
    }

    /// Factors 2 (8 m + i) + k in lane i of result k.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn two_by_eight(&self, m: usize) -> [Fr; 2] {
        let (a, b) = (&self.vectors[2 * m], &self.vectors[2 * m + 1]);
        let (even, odd) = (_mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1));
        let mut r = [Fr::zero(); 2];
        each!(I, 5, {
            r[0].0[I] = _mm512_permutex2var_epi64(a.0[I], even, b.0[I]);
            r[1].0[I] = _mm512_permutex2var_epi64(a.0[I], odd, b.0[I]);
        });
        r
    }

    /// Factors 4 (8 m + i) + k in lane i of result k.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub fn four_by_eight(&self, m: usize) -> [Fr; 4] {
        let [a, b] = [self.two_by_eight(2 * m), self.two_by_eight(2 * m + 1)];
        let (even, odd) = (_mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1));
        let mut r = [Fr::zero(); 4];
        each!(I, 5, {
            r[0].0[I] = _mm512_permutex2var_epi64(a[0].0[I], even, b[0].0[I]);
            r[1].0[I] = _mm512_permutex2var_epi64(a[1].0[I], even, b[1].0[I]);
            r[2].0[I] = _mm512_permutex2var_epi64(a[0].0[I], odd, b[0].0[I]);
            r[3].0[I] = _mm512_permutex2var_epi64(a[1].0[I], odd, b[1].0[I]);
        });
        r
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn canonical_to(elements: *const blst_fr, to: *mut Fr) {
    // SAFETY: the caller's pointers.
    unsafe { to.write(Fr::from_blst(elements).canonical()) };
}

/// `to[i]` = canonical `from[i]` times `factor`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn multiply(from: &[Fr], to: *mut Fr, factor: &Scalar) {
    let factor = Fr::splat_blst(&(*factor).into());
    for (i, a) in from.iter().enumerate() {
        // SAFETY: `to` has as many places as `from`.
        unsafe { to.add(i).write(Fr::mul_raw(a, &factor).canonical()) };
    }
}

//! Butterflies on a local buffer of rows, `width` vectors each.
//!
//! Ranges (see the bound of a product in [`Fr`]): Cooley-Tukey values stay below 8r, Gentleman-Sande values below 4.01r.
//! Within a pass values may be raw; everything is normalised once when the pass stores.

use core::arch::x86_64::*;

use super::super::fr::{FR_LIMBS, Fr};
use super::super::lane::{LIMB_MASK, each, hi, lo, splat, transpose};
use super::super::mont::{accumulate, reduce};
use super::twiddles::Twiddles;

/// a' = a + b w, b' = a - b w + 4r: raw values below 8r to raw values below 6.24r. `$w` is canonical.
///
/// b w < 2r + 0.0283 * 8r = 2.23r. A macro for the reason given at [`reduce`].
macro_rules! cooley_tukey {
    ($a:expr, $b:expr, $w:expr) => {{
        let b = $b.norm();
        let mut t = [_mm512_setzero_si512(); 2 * FR_LIMBS];
        accumulate!(t, &b, &$w, 5);
        let product = reduce!(Fr, t, 5, 4);
        let a = $a.cut::<4>();
        (a.add_raw(product), a.sub_raw(product).plus::<4>())
    }};
}

/// a' = a + b, b' = (a - b + 5r) w: raw values below 4.01r to the same. `$w` is canonical.
///
/// The sum is normalised at once: carries left in place would double with each layer, where those of
/// [`cooley_tukey`] only add up. 5r and not 4r: a partial reduction leaves up to 4r (1 + 2^-30), and the excess doubles with each layer.
macro_rules! gentleman_sande {
    ($a:expr, $b:expr, $w:expr) => {{
        let (a, b) = ($a, $b);
        let difference = a.sub_raw(b).plus::<5>().norm();
        let mut t = [_mm512_setzero_si512(); 2 * FR_LIMBS];
        accumulate!(t, &difference, &$w, 5);
        (a.add_raw(b).cut::<4>().norm(), reduce!(Fr, t, 5, 4))
    }};
}

/// Defines a layer over whole rows, and the three layers inside eight vectors, for one kind of butterfly.
macro_rules! layers {
    ($layer:ident, $in_vectors:ident, $butterfly:ident, $order:expr) => {
        /// One layer: `groups` groups of `2 half` vectors each, one after the other from `buffer`; group i uses twiddle
        /// `first_group + i`.
        ///
        /// # Safety
        /// The machine has the AVX-512 features, and the buffer `2 half groups` vectors.
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
        pub unsafe fn $layer(buffer: *mut Fr, half: usize, groups: usize, first_group: usize, twiddles: &Twiddles) {
            for i in 0..groups {
                let w = twiddles.splat(first_group + i);
                // SAFETY: group i lies in the buffer.
                unsafe {
                    let a = buffer.add(2 * half * i);
                    let b = a.add(half);
                    for j in 0..half {
                        (*a.add(j), *b.add(j)) = $butterfly!(*a.add(j), *b.add(j), w);
                    }
                }
            }
        }

        /// The three layers with strides below eight elements, on eight vectors: transposed, so that a butterfly again
        /// combines whole vectors. `m` is the number of these eight vectors among all.
        ///
        /// # Safety
        /// The machine has the AVX-512 features, and `block` eight vectors.
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
        pub unsafe fn $in_vectors(block: *mut Fr, m: usize, twiddles: &Twiddles) {
            // SAFETY: eight vectors.
            let block = unsafe { &mut *block.cast::<[Fr; 8]>() };
            transpose_eight(block);
            let (two, four) = (twiddles.two_by_eight(m), twiddles.four_by_eight(m));
            let one = twiddles.eight(m);
            // (half stride, twiddle of the pair starting at i)
            for half in $order {
                for pair in 0..4 {
                    let i = pair / half * 2 * half + pair % half;
                    let w = match half {
                        4 => one,
                        2 => &two[i / 4],
                        _ => &four[i / 2],
                    };
                    (block[i], block[i + half]) = $butterfly!(block[i], block[i + half], *w);
                }
            }
            transpose_eight(block);
        }
    };
}

layers!(cooley_tukey_layer, cooley_tukey_in_vectors, cooley_tukey, [4, 2, 1]);
layers!(gentleman_sande_layer, gentleman_sande_in_vectors, gentleman_sande, [1, 2, 4]);

/// Element l of vector i becomes element i of vector l.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn transpose_eight(block: &mut [Fr; 8]) {
    each!(LIMB, 5, {
        let mut rows = [_mm512_setzero_si512(); 8];
        each!(I, 8, {
            rows[I] = block[I].0[LIMB];
        });
        let rows = transpose(rows);
        each!(I, 8, {
            block[I].0[LIMB] = rows[I];
        });
    });
}

//! Montgomery arithmetic in 52-bit limbs, eight elements per vector; written once, instantiated for Fq and Fr.
//!
//! A value is sum t\[i\] 2^(52 i); lane l of every limb belongs to element l. **Normalised** means limbs in 0..2^52 with a
//! non-negative top limb: the multiply-add reads only 52 bits of its factors, so *every factor must be normalised*.
//! **Raw** means limbs are signed 64-bit numbers which still carry; sums and differences of raw values are formed limb by
//! limb, and one [`norm`](super::Fr::norm) ends the expression.

/// Adds the columns of a b to `$t`, for normalised a and b of `$n` limbs.
///
/// A macro, like [`reduce`]: LLVM does not inline functions of this size, and a product must be one piece of code.
#[macro_export]
macro_rules! accumulate {
    ($t:ident, $a:expr, $b:expr, $n:tt) => {
        let (a, b) = ($a, $b);
        debug_assert!(a.is_normal() && b.is_normal());
        each!(I, $n, {
            each!(J, $n, {
                $t[I + J] = lo($t[I + J], a.0[J], b.0[I]);
                $t[I + J + 1] = hi($t[I + J + 1], a.0[J], b.0[I]);
            });
        });
    };
}
pub use accumulate;

/// Adds the columns of a^2 to `$t`, which is zero, for a normalised a.
///
/// Cross products once, doubled by addition (doubling the factor would break its 52-bit limit), then the diagonal.
#[macro_export]
macro_rules! accumulate_square {
    ($t:ident, $a:expr, $n:tt) => {
        let a = $a;
        debug_assert!(a.is_normal());
        each!(I, $n, {
            each!(J, $n, {
                if I < J {
                    $t[I + J] = lo($t[I + J], a.0[J], a.0[I]);
                    $t[I + J + 1] = hi($t[I + J + 1], a.0[J], a.0[I]);
                }
            });
        });
        each!(I, $n, {
            $t[2 * I] = _mm512_add_epi64($t[2 * I], $t[2 * I]);
            $t[2 * I + 1] = _mm512_add_epi64($t[2 * I + 1], $t[2 * I + 1]);
            $t[2 * I] = lo($t[2 * I], a.0[I], a.0[I]);
            $t[2 * I + 1] = hi($t[2 * I + 1], a.0[I], a.0[I]);
        });
    };
}
pub use accumulate_square;

/// T / R mod p, raw, from the columns `$t` of T, each below 2^61. The result is below 2p + T/R.
///
/// All steps but the last add t0 (2^-52 mod p) one limb up instead of making t0 divisible: no multiplication has to finish
/// before the next may start.
#[macro_export]
macro_rules! reduce {
    ($F:ident, $t:ident, $n:tt, $n_less_1:tt) => {{
        let k = $F::constants();
        let p = &k.multiples[1];
        let mask = splat(LIMB_MASK);
        each!(I, $n_less_1, {
            let m = _mm512_and_si512($t[I], mask);
            $t[I + 1] = _mm512_add_epi64($t[I + 1], _mm512_srli_epi64::<52>($t[I]));
            each!(J, $n, {
                $t[I + 1 + J] = lo($t[I + 1 + J], m, splat(k.fold[J]));
                $t[I + 2 + J] = hi($t[I + 2 + J], m, splat(k.fold[J]));
            });
        });
        const LAST: usize = $n_less_1;
        let m = lo(_mm512_setzero_si512(), $t[LAST], splat(k.neg_inverse));
        each!(J, $n, {
            $t[LAST + J] = lo($t[LAST + J], m, splat(p[J]));
            $t[LAST + 1 + J] = hi($t[LAST + 1 + J], m, splat(p[J]));
        });
        $t[$n] = _mm512_add_epi64($t[$n], _mm512_srli_epi64::<52>($t[LAST]));
        let mut r = $F::zero();
        each!(I, $n, {
            r.0[I] = $t[$n + I];
        });
        r
    }};
}
pub use reduce;

/// Defines a vector field type `$F` with `$n` limbs over the `Modulus` constant `$modulus`.
///
/// `$slack` covers the carries that a raw top limb may still receive, in units of the top limb.
#[macro_export]
macro_rules! montgomery_field {
    ($(#[$doc:meta])* $F:ident, $n:tt, $n_less_1:tt, $words:literal, $modulus:path, $slack:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C, align(64))]
        pub struct $F(pub [__m512i; $n]);

        #[allow(dead_code, reason = "written once for two fields, each of which leaves some of it unused")]
        impl $F {
            /// The constants of the field, as memory operands.
            #[inline(always)]
            pub fn constants() -> &'static Modulus<$n> {
                hidden(&$modulus)
            }

            /// Zero in all lanes.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn zero() -> Self {
                Self([_mm512_setzero_si512(); $n])
            }

            /// The same element, given by its limbs, in all lanes.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn broadcast(limbs: &[u64; $n]) -> Self {
                let mut r = Self::zero();
                each!(I, $n, { r.0[I] = splat(limbs[I]); });
                r
            }

            /// The Montgomery form of 1 in all lanes, canonical.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn one() -> Self {
                Self::broadcast(&Self::constants().one)
            }

            /// Raw a + b.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn add_raw(mut self, b: Self) -> Self {
                each!(I, $n, { self.0[I] = _mm512_add_epi64(self.0[I], b.0[I]); });
                self
            }

            /// Raw a - b.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn sub_raw(mut self, b: Self) -> Self {
                each!(I, $n, { self.0[I] = _mm512_sub_epi64(self.0[I], b.0[I]); });
                self
            }

            /// Raw a + K p. K up to 8.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn plus<const K: usize>(mut self) -> Self {
                let kp = &Self::constants().multiples[K];
                each!(I, $n, { self.0[I] = _mm512_add_epi64(self.0[I], splat(kp[I])); });
                self
            }

            /// Partial reduction of a non-negative raw value: a - K p where the top limb shows that a > K p.
            ///
            /// A value left alone is at most K p (1 + 2^-9): the top limb alone is compared, with slack for the carries.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn cut<const K: usize>(mut self) -> Self {
                let kp = &Self::constants().multiples[K];
                let above = _mm512_cmpgt_epi64_mask(self.0[$n - 1], splat(kp[$n - 1] + $slack));
                each!(I, $n, { self.0[I] = _mm512_mask_sub_epi64(self.0[I], above, self.0[I], splat(kp[I])); });
                self
            }

            /// Raw negation in the lanes of `mask`.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn negate_lanes(mut self, mask: u8) -> Self {
                let zero = _mm512_setzero_si512();
                each!(I, $n, { self.0[I] = _mm512_mask_sub_epi64(self.0[I], mask, zero, self.0[I]); });
                self
            }

            /// `b` in the lanes of `mask`, `self` elsewhere.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn blend(mut self, mask: u8, b: Self) -> Self {
                each!(I, $n, { self.0[I] = _mm512_mask_blend_epi64(mask, self.0[I], b.0[I]); });
                self
            }

            /// Propagates carries upwards (arithmetically, so borrows too); the top limb keeps the sign.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn norm(mut self) -> Self {
                let mask = splat(LIMB_MASK);
                each!(I, $n_less_1, {
                    self.0[I + 1] = _mm512_add_epi64(self.0[I + 1], _mm512_srai_epi64::<52>(self.0[I]));
                    self.0[I] = _mm512_and_si512(self.0[I], mask);
                });
                self
            }

            /// May this value be a factor: all limbs in 0..2^52? (Out of line: it stands in every product of a debug build.)
            #[inline(never)]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn is_normal(&self) -> bool {
                let mut all = _mm512_setzero_si512();
                each!(I, $n, { all = _mm512_or_si512(all, self.0[I]); });
                _mm512_cmpgt_epu64_mask(all, splat(LIMB_MASK)) == 0
            }

            /// Raw a b / R, below 2p + ab/R. Factors normalised.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn mul_raw(a: &Self, b: &Self) -> Self {
                let mut t = [_mm512_setzero_si512(); 2 * $n];
                accumulate!(t, a, b, $n);
                reduce!(Self, t, $n, $n_less_1)
            }

            /// Raw (a b + c d) / R, below 2p + (ab + cd)/R: two products, one reduction. Factors normalised.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn mul_mul_add_raw(a: &Self, b: &Self, c: &Self, d: &Self) -> Self {
                let mut t = [_mm512_setzero_si512(); 2 * $n];
                accumulate!(t, a, b, $n);
                accumulate!(t, c, d, $n);
                reduce!(Self, t, $n, $n_less_1)
            }

            /// Raw a^2 / R, below 2p + a^2/R. The factor is normalised.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn sqr_raw(a: &Self) -> Self {
                let mut t = [_mm512_setzero_si512(); 2 * $n];
                accumulate_square!(t, a, $n);
                reduce!(Self, t, $n, $n_less_1)
            }

            /// Normalised product; see [`Self::mul_raw`].
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn mul(a: &Self, b: &Self) -> Self {
                Self::mul_raw(a, b).norm()
            }

            /// a - K p where a >= K p, else a, of a normalised a.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn subtract_once<const K: usize>(self) -> Self {
                let less = self.sub_raw(Self::broadcast(&Self::constants().multiples[K])).norm();
                less.blend(_mm512_movepi64_mask(less.0[$n - 1]), self)
            }

            /// The canonical representative, in 0..p. Any raw value in 0..8p.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn canonical(self) -> Self {
                self.norm().subtract_once::<4>().subtract_once::<2>().subtract_once::<1>()
            }

            /// Lanes whose value is 0 mod p. Any raw value in 0..8p.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn zero_lanes(self) -> u8 {
                let r = self.canonical();
                let mut all = _mm512_setzero_si512();
                each!(I, $n, { all = _mm512_or_si512(all, r.0[I]); });
                _mm512_testn_epi64_mask(all, all)
            }

            /// Limbs from vectors of 64-bit words: lane l of word i is word i of element l. Value below 2^(52 n).
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn from_words(w: [__m512i; $words]) -> Self {
                let mut r = Self::zero();
                each!(I, $n, {
                    const WORD: usize = 52 * I / 64;
                    const SHIFT: u32 = (52 * I % 64) as u32;
                    let mut limb = _mm512_srli_epi64::<SHIFT>(w[WORD]);
                    if SHIFT > 12 && WORD + 1 < $words {
                        const BACK: u32 = (64 - SHIFT) % 64;
                        const NEXT: usize = if WORD + 1 < $words { WORD + 1 } else { WORD };
                        limb = _mm512_or_si512(limb, _mm512_slli_epi64::<BACK>(w[NEXT]));
                    }
                    r.0[I] = _mm512_and_si512(limb, splat(LIMB_MASK));
                });
                r
            }

            /// 64-bit words from normalised limbs; the value must fit.
            #[inline]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
            pub fn to_words(self) -> [__m512i; $words] {
                let mut w = [_mm512_setzero_si512(); $words];
                each!(I, $n, {
                    const WORD: usize = 52 * I / 64;
                    const SHIFT: u32 = (52 * I % 64) as u32;
                    w[WORD] = _mm512_or_si512(w[WORD], _mm512_slli_epi64::<SHIFT>(self.0[I]));
                    if SHIFT > 12 && WORD + 1 < $words {
                        const BACK: u32 = (64 - SHIFT) % 64;
                        const NEXT: usize = if WORD + 1 < $words { WORD + 1 } else { WORD };
                        w[NEXT] = _mm512_or_si512(w[NEXT], _mm512_srli_epi64::<BACK>(self.0[I]));
                    }
                });
                w
            }
        }
    };
}
pub use montgomery_field;

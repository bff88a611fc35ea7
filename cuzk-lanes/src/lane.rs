//! The few vector instructions that everything else is written in, and the loop macro that keeps code straight-line.

use core::arch::asm;
use core::arch::x86_64::*;

/// Low 52 bits.
pub const LIMB_MASK: u64 = (1 << 52) - 1;

/// Repeats a block with the constant `$i` = 0, 1, .. `$n`-1.
///
/// Written-out repetition instead of a loop: limbs then live in registers whatever the optimiser thinks of unrolling.
#[macro_export]
macro_rules! each {
    ($i:ident, 4, $body:block) => { $crate::each!(@ $i [0 1 2 3] $body) };
    ($i:ident, 5, $body:block) => { $crate::each!(@ $i [0 1 2 3 4] $body) };
    ($i:ident, 7, $body:block) => { $crate::each!(@ $i [0 1 2 3 4 5 6] $body) };
    ($i:ident, 8, $body:block) => { $crate::each!(@ $i [0 1 2 3 4 5 6 7] $body) };
    (@ $i:ident [$($n:literal)*] $body:block) => {
        $( { #[allow(non_upper_case_globals)] const $i: usize = $n; $body } )*
    };
}
pub use each;

/// t + low 52 bits of a b, where a and b are read modulo 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub fn lo(t: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52lo_epu64(t, a, b)
}

/// t + bits 52..104 of a b.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub fn hi(t: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52hi_epu64(t, a, b)
}

/// The same 64-bit number in all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub fn splat(x: u64) -> __m512i {
    _mm512_set1_epi64(x.cast_signed())
}

/// Transposes 8x8 words: word l of result i is word i of argument l. 24 shuffles; its own inverse.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub fn transpose(r: [__m512i; 8]) -> [__m512i; 8] {
    // Pairs of words, then pairs of 128-bit quarters, then halves.
    let (a0, a1) = (_mm512_unpacklo_epi64(r[0], r[1]), _mm512_unpackhi_epi64(r[0], r[1]));
    let (a2, a3) = (_mm512_unpacklo_epi64(r[2], r[3]), _mm512_unpackhi_epi64(r[2], r[3]));
    let (a4, a5) = (_mm512_unpacklo_epi64(r[4], r[5]), _mm512_unpackhi_epi64(r[4], r[5]));
    let (a6, a7) = (_mm512_unpacklo_epi64(r[6], r[7]), _mm512_unpackhi_epi64(r[6], r[7]));
    let even = |x, y| _mm512_shuffle_i64x2::<0x88>(x, y);
    let odd = |x, y| _mm512_shuffle_i64x2::<0xdd>(x, y);
    let (b0, b1, b2, b3) = (even(a0, a2), even(a1, a3), odd(a0, a2), odd(a1, a3));
    let (b4, b5, b6, b7) = (even(a4, a6), even(a5, a7), odd(a4, a6), odd(a5, a7));
    [even(b0, b4), even(b1, b5), even(b2, b6), even(b3, b7), odd(b0, b4), odd(b1, b5), odd(b2, b6), odd(b3, b7)]
}

/// The same reference, hidden from the optimiser, at no cost in instructions.
///
/// With limbs known at compile time LLVM turns masked subtractions of constants into permutations and broadcasts, which
/// is about a tenth slower than reading them as memory operands.
#[inline(always)]
pub fn hidden<T>(constants: &'static T) -> &'static T {
    let mut address: *const T = constants;
    // The memory behind the pointer is really not touched.
    #[allow(clippy::pointers_in_nomem_asm_block)]
    // SAFETY: the template is empty, so the register comes back unchanged and still points to `constants`.
    unsafe {
        asm!("/* {0} */", inout(reg) address, options(pure, nomem, nostack, preserves_flags));
        &*address
    }
}

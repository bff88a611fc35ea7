//! Eight Poseidon hashes at once, with AVX-512 IFMA.
//!
//! Values are in blst's form, x 2^256, in lanes whose products divide by R = 2^260. Constants are in the form c R, so that a
//! product by one keeps the form; of two variables one is shifted by the four bits between the forms. What is shifted must
//! be canonical; so are all variables, because they are written.

use std::array;

use blst::blst_fr;
use blstrs::Scalar;
use cuzk_lanes::{
    fr::{FR_LIMBS, Fr},
    modulus::split,
};
use ff::Field;

use super::{FULL_ROUNDS, Matrix, Poseidon, Sparse};

/// Hashes at once.
pub(crate) const LANES: usize = 8;

type Limbs = [u64; FR_LIMBS];

/// The matrices of a hash.
pub(super) struct Constants<const W: usize> {
    mix: [[Limbs; W]; W],
    mix_fourth: [[Limbs; W]; W],
    sparse: Vec<SparseLimbs<W>>,
}

struct SparseLimbs<const W: usize> {
    column: [Limbs; W],
    row: Vec<Limbs>,
}

impl<const W: usize> Constants<W> {
    pub(super) fn new(mix: &Matrix<W>, mix_fourth: &Matrix<W>, sparse: &[Sparse<W>]) -> Self {
        // c 2^256, times 2^4.
        let factor = |c: &Scalar| limbs(&(c * Scalar::from(1 << 4)));
        let matrix = |matrix: &Matrix<W>| matrix.each_ref().map(|column| column.each_ref().map(factor));
        let sparse = sparse.iter().map(|Sparse { column, row }| SparseLimbs {
            column: column.each_ref().map(factor),
            row: row.iter().map(factor).collect(),
        });
        Self { mix: matrix(mix), mix_fourth: matrix(mix_fourth), sparse: sparse.collect() }
    }
}

/// x 2^256 in limbs of 52 bits.
fn limbs(x: &Scalar) -> Limbs {
    split(blst_fr::from(*x).l)
}

impl<const W: usize> Poseidon<W> {
    /// [`Self::hash_all`] of up to eight hashes.
    ///
    /// # Safety
    /// The machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub(super) unsafe fn trace_lanes(&self, inputs: &[impl AsRef<[Scalar]>], traces: &mut [&mut Vec<Scalar>]) {
        let mut variables = Vec::with_capacity(self.num_aux());
        self.permute(inputs, |variable| variables.push(store(variable)));
        for (lane, to) in traces.iter_mut().enumerate() {
            to.extend(variables.iter().map(|values| Scalar::from(values[lane])));
        }
    }

    /// Up to eight hashes. Lanes without a hash repeat the last.
    ///
    /// # Safety
    /// The machine has the AVX-512 features.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    pub(super) unsafe fn digest_lanes(&self, inputs: &[impl AsRef<[Scalar]>]) -> [Scalar; LANES] {
        store(self.permute(inputs, |_| ())).map(Scalar::from)
    }

    /// The rounds of [`Self::hash`]; variables are kept in canonical form.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
    fn permute(&self, inputs: &[impl AsRef<[Scalar]>], mut keep: impl FnMut(Fr)) -> Fr {
        let lanes: [&[Scalar]; LANES] = array::from_fn(|lane| inputs[lane.min(inputs.len() - 1)].as_ref());
        let constants = &self.lanes;
        let half = FULL_ROUNDS / 2;
        let mut state = [load([self.tag; LANES]); W];
        for (i, to) in state.iter_mut().enumerate().skip(1) {
            let x =
                load(lanes.map(|inputs| inputs[i - 1])).add_raw(splat(&self.first_keys[i])).norm().subtract_once::<1>();
            *to = s_box(&mut keep, x, &self.full_keys[0][i]);
        }
        state = multiply(&state, &constants.mix);
        for round in 1..half {
            for (x, key) in state.iter_mut().zip(&self.full_keys[round]) {
                *x = allocated_s_box(&mut keep, *x, key);
            }
            state = multiply(&state, if round == half - 1 { &constants.mix_fourth } else { &constants.mix });
        }
        for (key, sparse) in self.partial_keys.iter().zip(&constants.sparse) {
            state[0] = allocated_s_box(&mut keep, state[0], key);
            // The other elements are below 2.01 r: the sum below 2 r + 12 · 2.01 r² / R < 2.7 r.
            let mixed = below_4(Fr::dot_raw(&state, &sparse.column));
            let first = std::mem::replace(&mut state[0], mixed);
            for (x, factor) in state[1..].iter_mut().zip(&sparse.row) {
                // Below 2.03 r + 2.01 r, then 2.04 r, then 2.01 r: a cut at 2 r is not exact.
                let sum = Fr::mul_raw(&first, &Fr::broadcast(factor)).add_raw(*x);
                *x = sum.norm().cut::<2>().norm().cut::<2>().norm();
            }
        }
        for x in &mut state[1..] {
            *x = below_4(*x);
        }
        for round in half..FULL_ROUNDS - 1 {
            for (x, key) in state.iter_mut().zip(&self.full_keys[round]) {
                *x = allocated_s_box(&mut keep, *x, key);
            }
            state = multiply(&state, &constants.mix);
        }
        for x in &mut state {
            *x = allocated_s_box(&mut keep, *x, &Scalar::ZERO);
        }
        let hash = below_4(Fr::dot_raw(&state, &constants.mix[1]));
        keep(hash);
        hash
    }
}

/// x² and x⁴ and x⁵ + key, which are variables, of a canonical x.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn s_box(keep: &mut impl FnMut(Fr), x: Fr, key: &Scalar) -> Fr {
    // A product is below 2 r + 16 r² / R < 2.5 r.
    let shifted = x.shifted();
    let x2 = below_4(Fr::mul_raw(&shifted, &x));
    keep(x2);
    let x4 = below_4(Fr::mul_raw(&x2.shifted(), &x2));
    keep(x4);
    let result = below_4(Fr::mul_raw(&shifted, &x4).add_raw(splat(key)));
    keep(result);
    result
}

/// Likewise, of an x that is a variable, too.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn allocated_s_box(keep: &mut impl FnMut(Fr), x: Fr, key: &Scalar) -> Fr {
    keep(x);
    s_box(keep, x, key)
}

/// The canonical form of the products of a state of canonical elements with the columns of a matrix.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn multiply<const W: usize>(state: &[Fr; W], matrix: &[[Limbs; W]; W]) -> [Fr; W] {
    let mut product = *state;
    for (x, column) in product.iter_mut().zip(matrix) {
        // Below 2 r + 12 r² / R < 2.4 r.
        *x = below_4(Fr::dot_raw(state, column));
    }
    product
}

/// The canonical form of a raw value below 4 r.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn below_4(x: Fr) -> Fr {
    x.norm().subtract_once::<2>().subtract_once::<1>()
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn splat(x: &Scalar) -> Fr {
    Fr::broadcast(&limbs(x))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn load(x: [Scalar; LANES]) -> Fr {
    let x = x.map(blst_fr::from);
    // SAFETY: an array of eight.
    unsafe { Fr::load(x.as_ptr()) }
}

/// The elements of canonical lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
fn store(x: Fr) -> [blst_fr; LANES] {
    let mut elements = [blst_fr::default(); LANES];
    // SAFETY: an array of eight.
    unsafe { x.store(elements.as_mut_ptr()) };
    elements
}

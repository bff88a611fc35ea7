//! Poseidon as the circuit computes it: the optimized form of neptune, with every S-box's powers as variables.
//!
//! The linear layers are never allocated, so an S-box is: its input (a variable of its own, unless it is one of the hash's
//! inputs), then l^2, l^4 and l^5 plus the key of the next round. The domain tag's first S-box is a constant.

use std::{array, sync::LazyLock};

use blstrs::Scalar;
use ff::Field;
use filecoin_hashers::{POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11};

use super::{
    field::{self, dot, mul_add},
    writer::Writer,
};

const FULL_ROUNDS: usize = 8;

/// The hashes of the circuit.
pub(super) static POSEIDON_2: LazyLock<Poseidon<3>> = LazyLock::new(|| poseidon!(POSEIDON_CONSTANTS_2));
pub(super) static POSEIDON_8: LazyLock<Poseidon<9>> = LazyLock::new(|| poseidon!(POSEIDON_CONSTANTS_8));
pub(super) static POSEIDON_11: LazyLock<Poseidon<12>> = LazyLock::new(|| poseidon!(POSEIDON_CONSTANTS_11));

/// Poseidon with a state of `W` elements: the domain tag and `W - 1` inputs.
pub(super) struct Poseidon<const W: usize> {
    /// What the first S-box makes of the domain tag.
    tag: Scalar,
    /// Added to the inputs before the first S-boxes.
    first_keys: [Scalar; W],
    /// Added to the outputs of the S-boxes of all full rounds but the last.
    full_keys: [[Scalar; W]; FULL_ROUNDS - 1],
    /// Added to the output of the S-box of each partial round.
    partial_keys: Vec<Scalar>,
    /// The linear layer of the full rounds but the fourth.
    mix: Matrix<W>,
    /// That of the fourth, before the partial rounds.
    mix_fourth: Matrix<W>,
    /// That of each partial round.
    sparse: Vec<Sparse<W>>,
}

/// A matrix by columns: row vectors are multiplied with it from the left.
type Matrix<const W: usize> = [[Scalar; W]; W];

/// The identity but for its first column and its first row.
struct Sparse<const W: usize> {
    column: [Scalar; W],
    /// Without the first entry, which is that of the column.
    row: Vec<Scalar>,
}

/// The tables of one of the hashers' constants, whose type cannot be named without depending on neptune.
macro_rules! poseidon {
    ($constants:expr) => {{
        let constants = &*$constants;
        assert_eq!(constants.full_rounds, FULL_ROUNDS);
        Poseidon::new(
            constants.domain_tag,
            &constants.compressed_round_constants,
            [&constants.mds_matrices.m, &constants.pre_sparse_matrix],
            constants.sparse_matrixes.iter().map(|m| (&m.w_hat[..], &m.v_rest[..])),
        )
    }};
}
use poseidon;

impl<const W: usize> Poseidon<W> {
    fn new<'a>(
        domain_tag: Scalar,
        keys: &[Scalar],
        matrices: [&Vec<Vec<Scalar>>; 2],
        sparse: impl Iterator<Item = (&'a [Scalar], &'a [Scalar])>,
    ) -> Self {
        let [mix, mix_fourth] = matrices.map(|rows| array::from_fn(|j| array::from_fn(|i| rows[i][j])));
        let sparse: Vec<_> =
            sparse.map(|(column, row)| Sparse { column: array::from_fn(|i| column[i]), row: row.to_vec() }).collect();
        let full = |round: usize| -> [Scalar; W] { array::from_fn(|i| keys[round * W + i]) };
        // Keys come in the order of use: before the first round, after full rounds 1 to 4, partial rounds, full rounds.
        let (half, partial) = (FULL_ROUNDS / 2, sparse.len());
        let after = |round: usize| {
            if round < half { full(round + 1) } else { array::from_fn(|i| keys[(round + 1) * W + partial + i]) }
        };
        let (first_keys, full_keys) = (full(0), array::from_fn(after));
        let partial_keys = keys[(half + 1) * W..][..partial].to_vec();
        let tag = (domain_tag + first_keys[0]).pow_vartime([5]) + full_keys[0][0];
        Self { tag, first_keys, full_keys, partial_keys, mix, mix_fourth, sparse }
    }

    /// Variables of one hash.
    pub(super) fn num_aux(&self) -> usize {
        3 * (W - 1) + 4 * W * (FULL_ROUNDS - 1) + 4 * self.sparse.len() + 1
    }

    /// Hashes `W - 1` elements, and writes the variables.
    pub(super) fn hash(&self, out: &mut Writer, inputs: &[Scalar]) -> Scalar {
        let half = FULL_ROUNDS / 2;
        let mut state = [self.tag; W];
        for i in 1..W {
            state[i] = s_box(out, inputs[i - 1] + self.first_keys[i], &self.full_keys[0][i]);
        }
        state = multiply(&state, &self.mix);
        for round in 1..half {
            for (x, key) in state.iter_mut().zip(&self.full_keys[round]) {
                *x = allocated_s_box(out, *x, key);
            }
            state = multiply(&state, if round == half - 1 { &self.mix_fourth } else { &self.mix });
        }
        for (key, sparse) in self.partial_keys.iter().zip(&self.sparse) {
            state[0] = allocated_s_box(out, state[0], key);
            let mixed = dot(&state, &sparse.column);
            let first = std::mem::replace(&mut state[0], mixed);
            for (x, factor) in state[1..].iter_mut().zip(&sparse.row) {
                *x = mul_add(&first, factor, x);
            }
        }
        for round in half..FULL_ROUNDS - 1 {
            for (x, key) in state.iter_mut().zip(&self.full_keys[round]) {
                *x = allocated_s_box(out, *x, key);
            }
            state = multiply(&state, &self.mix);
        }
        state = state.map(|x| allocated_s_box(out, x, &Scalar::ZERO));
        // Of the last linear layer only the element that is the hash is needed.
        let hash = dot(&state, &self.mix[1]);
        out.num(hash);
        out.equal(&hash);
        hash
    }
}

/// The fifth power of x, which is no variable itself; x², x⁴ and x⁵ + key are.
#[inline]
fn s_box(out: &mut Writer, x: Scalar, key: &Scalar) -> Scalar {
    let x2 = field::mul(&x, &x);
    let x4 = field::mul(&x2, &x2);
    let result = field::mul_add(&x4, &x, key);
    for (variable, a, b) in [(x2, &x, &x), (x4, &x2, &x2), (result, &x, &x4)] {
        out.num(variable);
        out.product(a, b);
    }
    result
}

/// Likewise, of an x that is a variable, too.
#[inline]
fn allocated_s_box(out: &mut Writer, x: Scalar, key: &Scalar) -> Scalar {
    out.num(x);
    out.equal(&x);
    s_box(out, x, key)
}

fn multiply<const W: usize>(state: &[Scalar; W], matrix: &Matrix<W>) -> [Scalar; W] {
    array::from_fn(|j| dot(state, &matrix[j]))
}

#[cfg(test)]
mod tests {
    use ff::PrimeField;
    use filecoin_hashers::{
        HashFunction,
        poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher},
    };
    use rand::{SeedableRng, rngs::StdRng};
    use storage_proofs_porep::stacked::Column;

    use super::*;

    /// The hash by neptune.
    fn reference(inputs: &[Scalar]) -> Scalar {
        let nodes: Vec<PoseidonDomain> = inputs.iter().map(|&x| x.into()).collect();
        if inputs.len() == 11 {
            let column = Column::<PoseidonHasher>::new(0, nodes).expect("a column takes any rows");
            return column.hash();
        }
        let bytes: Vec<u8> = inputs.iter().flat_map(Scalar::to_repr).collect();
        <PoseidonFunction as HashFunction<_>>::hash(&bytes).into()
    }

    fn check<const W: usize>(poseidon: &Poseidon<W>, published_aux: usize) {
        let seed = rand::random();
        let mut rng = StdRng::seed_from_u64(seed);
        let random: Vec<Scalar> = (1..W).map(|_| Scalar::random(&mut rng)).collect();
        for inputs in [random, vec![Scalar::ZERO; W - 1], vec![-Scalar::ONE; W - 1]] {
            let mut out = Writer::default();
            let hash = poseidon.hash(&mut out, &inputs);
            assert_eq!(hash, reference(&inputs), "width {W}, seed {seed}");
            assert_eq!(out.finish().witness.num_aux(), published_aux);
        }
        assert_eq!(poseidon.num_aux(), published_aux);
    }

    #[test]
    fn hashes_are_those_of_neptune() {
        check(&POSEIDON_2, 311);
        check(&POSEIDON_8, 505);
        check(&POSEIDON_11, 598);
    }
}

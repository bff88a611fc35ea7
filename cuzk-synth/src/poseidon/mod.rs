//! Poseidon, in the optimized form of neptune: what the tree nodes and columns of a sector are hashed by.
//!
//! With a hash come all that its circuit allocates for it, its variables: of every S-box the input (unless it is one of the
//! hash's inputs), then its square, its fourth power, and its fifth power plus the key of the next round; the linear layers
//! are never allocated. The domain tag's first S-box is a constant.
//!
//! Eight hashes are computed at once ([`lanes`]) where the processor has AVX-512 IFMA; [`field`] is the arithmetic of one.

pub(crate) mod field;
mod lanes;

use std::{array, sync::LazyLock};

use blstrs::Scalar;
use cuzk_lanes::Backend;
use ff::Field;
use filecoin_hashers::{POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11};
use rayon::prelude::*;

use field::{dot, mul_add};
pub(crate) use lanes::LANES;

const FULL_ROUNDS: usize = 8;

/// The hashes of the circuit.
pub(crate) static POSEIDON_2: LazyLock<Poseidon<3>> = LazyLock::new(|| poseidon!(POSEIDON_CONSTANTS_2));
pub(crate) static POSEIDON_8: LazyLock<Poseidon<9>> = LazyLock::new(|| poseidon!(POSEIDON_CONSTANTS_8));
pub(crate) static POSEIDON_11: LazyLock<Poseidon<12>> = LazyLock::new(|| poseidon!(POSEIDON_CONSTANTS_11));

/// Hashes of 2, 8 or 11 elements, all of one number. Parallel on the current rayon pool.
pub(crate) fn digests(inputs: &[impl AsRef<[Scalar]> + Sync]) -> Vec<Scalar> {
    let backend = Backend::current();
    match inputs.first().map(|inputs| inputs.as_ref().len()) {
        None => Vec::new(),
        Some(2) => POSEIDON_2.digests(backend, inputs),
        Some(8) => POSEIDON_8.digests(backend, inputs),
        Some(_) => POSEIDON_11.digests(backend, inputs),
    }
}

/// Poseidon with a state of `W` elements: the domain tag and `W - 1` inputs.
pub(crate) struct Poseidon<const W: usize> {
    /// What the first S-box makes of the domain tag.
    tag: Scalar,
    /// Added to the inputs before the first S-boxes.
    pub(crate) first_keys: [Scalar; W],
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
    /// The same for eight hashes at once.
    lanes: lanes::Constants<W>,
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
        let lanes = lanes::Constants::new(&mix, &mix_fourth, &sparse);
        Self { tag, first_keys, full_keys, partial_keys, mix, mix_fourth, sparse, lanes }
    }

    /// Variables of one hash.
    pub(crate) fn num_aux(&self) -> usize {
        3 * (W - 1) + 4 * W * (FULL_ROUNDS - 1) + 4 * self.sparse.len() + 1
    }

    /// Appends the variables of hashes of `W - 1` elements each to `traces`, one for each: the last of each is the hash.
    pub(crate) fn hash_all(&self, inputs: &[impl AsRef<[Scalar]>], traces: &mut [&mut Vec<Scalar>]) {
        self.hash_all_by(Backend::current(), inputs, traces);
    }

    fn hash_all_by(&self, backend: Backend, inputs: &[impl AsRef<[Scalar]>], traces: &mut [&mut Vec<Scalar>]) {
        for (inputs, traces) in inputs.chunks(LANES).zip(traces.chunks_mut(LANES)) {
            match backend.checked() {
                // Eight take as long as two of the others.
                Backend::Ifma if inputs.len() > 1 => {
                    // SAFETY: the instructions are there.
                    unsafe { self.trace_lanes(inputs, traces) };
                }
                _ => {
                    for (inputs, trace) in inputs.iter().zip(traces) {
                        self.hash(inputs.as_ref(), |variable| trace.push(variable));
                    }
                }
            }
        }
    }

    /// Hashes of `W - 1` elements each. Parallel on the current rayon pool.
    fn digests(&self, backend: Backend, inputs: &[impl AsRef<[Scalar]> + Sync]) -> Vec<Scalar> {
        inputs.par_chunks(LANES).flat_map_iter(|inputs| self.digest_some(backend, inputs)).collect()
    }

    /// Up to eight hashes.
    fn digest_some(&self, backend: Backend, inputs: &[impl AsRef<[Scalar]>]) -> Vec<Scalar> {
        match backend.checked() {
            Backend::Ifma if inputs.len() > 1 => {
                // SAFETY: the instructions are there.
                let digests = unsafe { self.digest_lanes(inputs) };
                digests[..inputs.len()].to_vec()
            }
            _ => inputs.iter().map(|inputs| self.hash(inputs.as_ref(), |_| ())).collect(),
        }
    }

    /// One hash; its variables go to `keep` in order.
    pub(crate) fn hash(&self, inputs: &[Scalar], mut keep: impl FnMut(Scalar)) -> Scalar {
        let half = FULL_ROUNDS / 2;
        let mut state = [self.tag; W];
        for i in 1..W {
            state[i] = s_box(&mut keep, inputs[i - 1] + self.first_keys[i], &self.full_keys[0][i]);
        }
        state = multiply(&state, &self.mix);
        for round in 1..half {
            for (x, key) in state.iter_mut().zip(&self.full_keys[round]) {
                *x = allocated_s_box(&mut keep, *x, key);
            }
            state = multiply(&state, if round == half - 1 { &self.mix_fourth } else { &self.mix });
        }
        for (key, sparse) in self.partial_keys.iter().zip(&self.sparse) {
            state[0] = allocated_s_box(&mut keep, state[0], key);
            let mixed = dot(&state, &sparse.column);
            let first = std::mem::replace(&mut state[0], mixed);
            for (x, factor) in state[1..].iter_mut().zip(&sparse.row) {
                *x = mul_add(&first, factor, x);
            }
        }
        for round in half..FULL_ROUNDS - 1 {
            for (x, key) in state.iter_mut().zip(&self.full_keys[round]) {
                *x = allocated_s_box(&mut keep, *x, key);
            }
            state = multiply(&state, &self.mix);
        }
        state = state.map(|x| allocated_s_box(&mut keep, x, &Scalar::ZERO));
        // Of the last linear layer only the element that is the hash is needed.
        let hash = dot(&state, &self.mix[1]);
        keep(hash);
        hash
    }
}

/// The fifth power of x, which is no variable itself; x², x⁴ and x⁵ + key are.
#[inline]
fn s_box(keep: &mut impl FnMut(Scalar), x: Scalar, key: &Scalar) -> Scalar {
    let x2 = field::mul(&x, &x);
    let x4 = field::mul(&x2, &x2);
    let result = field::mul_add(&x4, &x, key);
    for variable in [x2, x4, result] {
        keep(variable);
    }
    result
}

/// Likewise, of an x that is a variable, too.
#[inline]
fn allocated_s_box(keep: &mut impl FnMut(Scalar), x: Scalar, key: &Scalar) -> Scalar {
    keep(x);
    s_box(keep, x, key)
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
        let mut inputs = vec![vec![Scalar::ZERO; W - 1], vec![-Scalar::ONE; W - 1]];
        inputs.extend((0..17).map(|_| (1..W).map(|_| Scalar::random(&mut rng)).collect()));
        let expected: Vec<Vec<Scalar>> = inputs
            .iter()
            .map(|inputs| {
                let mut trace = Vec::new();
                let hash = poseidon.hash(inputs, |variable| trace.push(variable));
                assert_eq!(hash, reference(inputs), "width {W}, seed {seed}");
                assert_eq!((trace.len(), trace.last()), (published_aux, Some(&hash)));
                trace
            })
            .collect();
        for backend in Backend::available() {
            for count in [0, 1, 2, 8, 9, 19] {
                let mut traces = vec![Vec::new(); count];
                poseidon.hash_all_by(backend, &inputs[..count], &mut traces.iter_mut().collect::<Vec<_>>());
                assert!(traces == expected[..count], "width {W}, {count} by {backend:?}, seed {seed}");
                let digests = poseidon.digests(backend, &inputs[..count]);
                assert!(digests.iter().eq(expected[..count].iter().flat_map(|trace| trace.last())), "seed {seed}");
            }
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

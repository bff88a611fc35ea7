//! Small deterministic kernels whose instructions are counted. The counting tool has no AVX-512, so it sees the portable
//! arithmetic; what is vector code is timed only.

use anyhow::Result;
use blstrs::{G1Affine, G2Affine};
use cuzk_gpu::arith::{G1, G2};
use cuzk_synth::bitmap::Bitmap;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    Calibration, Candidates, Operation, Tier,
    arithmetic::{self, Scalars},
    constraints, engine, power, requests,
};

pub(super) fn add(operations: &mut Vec<Operation>) {
    let mut add = |room, field, size: String, prepare: fn(&mut Candidates) -> Result<()>| {
        operations.push(Operation::new([room, field], size, Tier::Counted, Calibration::OneThread, prepare));
    };
    add("parse", "c1", "2KiB".to_owned(), requests::parse);
    add("scheduler", "jobs", "20x10".to_owned(), |c| engine::scheduler(c, 20));
    add("store", "jobs", "100".to_owned(), |c| engine::store(c, 100));
    add("select", "bits", power(16), select);
    add("compile", "r1cs", power(12), |c| constraints::compile(c, 12));
    add("spmv", "fr", power(12), |c| constraints::spmv(c, 12));
    add("quotient", "fr", power(10), |c| arithmetic::quotient(c, 10));
    add("msm_full", "g1", power(8), |c| arithmetic::msm::<G1, G1Affine>(c, Scalars::Full, 8));
    add("msm_bits", "g1", power(10), |c| arithmetic::msm::<G1, G1Affine>(c, Scalars::Bits, 10));
    add("msm_full", "g2", power(7), |c| arithmetic::msm::<G2, G2Affine>(c, Scalars::Full, 7));
}

/// The bits of a witness at the variables that a query has.
fn select(candidates: &mut Candidates) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(4);
    let (mut bits, mut mask) = (Bitmap::default(), Bitmap::default());
    let mut expected = Bitmap::default();
    for _ in 0..1 << 16 {
        let (bit, selected) = (rng.r#gen(), rng.gen_bool(0.25));
        bits.push(bit);
        mask.push(selected);
        if selected {
            expected.push(bit);
        }
    }
    let run = move || {
        let mut packed = Bitmap::default();
        bits.select_into(&mask, &mut packed);
        packed
    };
    candidates.ours("cuzk", run, |packed| *packed == expected)
}

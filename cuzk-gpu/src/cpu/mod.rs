//! The backend that needs no device: all phases on the host's cores.

pub(crate) mod selection;

use std::sync::Arc;

use blstrs::{G1Projective, G2Projective};
use cuzk_synth::{planes::Planes, r1cs::Matrix};
use rayon::ThreadPool;

use crate::{
    arith::{
        backend::Backend as Arithmetic,
        curve::G1,
        fr_vec::{FrVec, quotient_h},
        table::Table,
    },
    prover::{Backend, KernelSums, Partition, ProveError},
    srs::Srs,
    timing::{Phase, Timings},
};
use selection::Selection;

/// The host as a device.
#[derive(Debug)]
pub struct Cpu {
    arithmetic: Arithmetic,
    pools: Option<Pools>,
}

/// The threads that the phases run on. Without pools they run on the caller's current one.
#[derive(Clone, Debug)]
pub struct Pools {
    /// For staging, and on the CPU for the kernel phase.
    pub kernels: Arc<ThreadPool>,
    /// For what follows the release of the lock: beside a GPU, a small pool keeps its buckets in the cache.
    pub finish: Arc<ThreadPool>,
}

/// A partition in the form that the kernels take: A·w and B·w as vectors of the domain, the witness by query.
pub struct Staged {
    a_rows: FrVec,
    b_rows: FrVec,
    l: Selection,
    a: Selection,
    b: Selection,
}

impl Cpu {
    /// The host with an arithmetic, which must be the one that the parameters were loaded for, on the caller's threads.
    pub fn new(arithmetic: Arithmetic) -> Self {
        Self { arithmetic, pools: None }
    }

    /// The same on threads of its own.
    pub fn with_pools(arithmetic: Arithmetic, pools: Pools) -> Self {
        Self { arithmetic, pools: Some(pools) }
    }

    fn on<T: Send>(&self, pool: fn(&Pools) -> &ThreadPool, f: impl FnOnce() -> T + Send) -> T {
        Pools::on(self.pools.as_ref(), pool, f)
    }
}

impl Pools {
    /// Runs `f` on one of the pools; without any, on the caller's current threads.
    pub(crate) fn on<T: Send>(pools: Option<&Self>, pool: fn(&Self) -> &ThreadPool, f: impl FnOnce() -> T + Send) -> T {
        match pools {
            Some(pools) => pool(pools).install(f),
            None => f(),
        }
    }
}

impl Backend for Cpu {
    type Key = Srs;
    type Staged = Staged;
    type Rest = (KernelSums, Selection);

    fn name(&self) -> &str {
        "cpu"
    }

    fn stage(&self, _: &Srs, partition: &Partition) -> Result<Staged, ProveError> {
        Ok(self.on(|pools| &pools.kernels, || self.stage_here(partition)))
    }

    fn kernels(&self, srs: &Srs, staged: Staged, timings: &mut Timings) -> Result<(KernelSums, Selection), ProveError> {
        self.on(|pools| &pools.kernels, || self.kernels_here(srs, staged, timings))
    }

    fn finish(&self, srs: &Srs, (sums, b): Self::Rest) -> Result<(KernelSums, G2Projective), ProveError> {
        let sum = self.on(|pools| &pools.finish, || b.sum(&srs.b_g2));
        srs.b_g2.release();
        Ok((sums, sum))
    }
}

impl Cpu {
    fn stage_here(&self, Partition { r1cs, witness, rows: planes, .. }: &Partition) -> Staged {
        let rows = |matrix: &Matrix, planes: Option<&Planes>| {
            FrVec::from_fn(self.arithmetic, r1cs.log_domain(), |first, values| match planes {
                Some(planes) => planes.fill(first, values),
                None => r1cs.fill(matrix, witness, first, values),
            })
        };
        let planes = planes.as_ref();
        let density = &r1cs.density;
        let b_inputs: Vec<_> = density.b_inputs.iter_ones().map(|i| witness.inputs()[i]).collect();
        Staged {
            a_rows: rows(&r1cs.a, planes.map(|rows| &rows.a)),
            b_rows: rows(&r1cs.b, planes.map(|rows| &rows.b)),
            l: Selection::new(&[], witness, None),
            // All inputs occur in A.
            a: Selection::new(witness.inputs(), witness, Some(&density.a_aux)),
            b: Selection::new(&b_inputs, witness, Some(&density.b_aux)),
        }
    }

    fn kernels_here(
        &self,
        srs: &Srs,
        staged: Staged,
        timings: &mut Timings,
    ) -> Result<(KernelSums, Selection), ProveError> {
        for table in [&srs.l, &srs.a, &srs.b_g1] {
            table.will_need();
        }
        srs.b_g2.will_need();
        // C is not needed: on the domain it is the product of A and B, or the proof does not verify.
        let h = timings.measure(Phase::Quotient, || quotient_h(staged.a_rows, staged.b_rows, None));
        let mut sum = |table: &Table<G1>, phase, f: &dyn Fn(&Table<G1>) -> G1Projective| {
            let sum = timings.measure(phase, || f(table));
            table.release();
            sum
        };
        let sums = KernelSums {
            h: sum(&srs.h, Phase::MsmH, &|table| table.msm(&h)),
            l: sum(&srs.l, Phase::MsmL, &|table| staged.l.sum(table)),
            a: sum(&srs.a, Phase::MsmA, &|table| staged.a.sum(table)),
            b_g1: sum(&srs.b_g1, Phase::MsmBG1, &|table| staged.b.sum(table)),
        };
        Ok((sums, staged.b))
    }
}

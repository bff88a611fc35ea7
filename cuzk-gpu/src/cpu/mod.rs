//! The backend that needs no device: all phases on the host's cores.

use std::sync::Arc;

use bellperson::{
    domain::EvaluationDomain,
    gpu::LockedMultiexpKernel,
    multiexp::{DensityTracker, multiexp},
};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_synth::{assignment::Assignment, bitmap::Bitmap};
use ec_gpu_gen::{
    multiexp_cpu::{FullDensity, QueryDensity},
    threadpool::Worker,
};
use ff::PrimeField;
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use crate::{
    prover::{Backend, KernelSums, ProveError},
    srs::Srs,
    timing::{Phase, Timings},
};

/// Plain 256-bit integers, as the multi-scalar multiplications take them.
type Integers = Arc<Vec<[u8; 32]>>;

/// The host as a device.
pub struct Cpu {
    worker: Worker,
}

/// A partition whose rows and variables are ready to be used.
pub struct Staged {
    rows: [Vec<Scalar>; 3],
    variables: Variables,
}

/// A partition's variables as integers, and which of them occur.
pub struct Variables {
    inputs: Integers,
    aux: Integers,
    a_aux: Arc<DensityTracker>,
    b_inputs: Arc<DensityTracker>,
    b_aux: Arc<DensityTracker>,
}

impl Cpu {
    /// The host with all its cores.
    pub fn new() -> Self {
        Self {
            worker: Worker::new(),
        }
    }

    /// Coefficients of H = (A B − C) / (X^n − 1), by evaluation on a coset of the domain.
    fn quotient(&self, rows: [Vec<Scalar>; 3]) -> Result<Integers, ProveError> {
        let worker = &self.worker;
        let [a, b, c] = rows;
        let on_coset = |values| -> Result<EvaluationDomain<Scalar>, ProveError> {
            let mut domain = EvaluationDomain::from_coeffs(values).map_err(refused)?;
            domain.ifft(worker, &mut None).map_err(refused)?;
            domain.coset_fft(worker, &mut None).map_err(refused)?;
            Ok(domain)
        };
        let mut product = on_coset(a)?;
        product.mul_assign(worker, &on_coset(b)?);
        product.sub_assign(worker, &on_coset(c)?);
        product.divide_by_z_on_coset(worker);
        product.icoset_fft(worker, &mut None).map_err(refused)?;
        let mut coefficients = product.into_coeffs();
        // The degree of H is at most n − 2.
        coefficients.pop();
        Ok(integers(&coefficients))
    }

    fn msm<G, Q, D>(
        &self,
        points: &Arc<Vec<G>>,
        first: usize,
        density: D,
        scalars: &Integers,
    ) -> Result<G::Curve, ProveError>
    where
        G: PrimeCurveAffine<Scalar = Scalar>,
        for<'a> &'a Q: QueryDensity,
        D: Send + Sync + 'static + Clone + AsRef<Q>,
    {
        multiexp(
            &self.worker,
            (points.clone(), first),
            density,
            scalars.clone(),
            &mut LockedMultiexpKernel::<G>::new(false),
        )
        .wait()
        .map_err(refused)
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for Cpu {
    type Staged = Staged;
    type Rest = Variables;

    fn name(&self) -> &str {
        "cpu"
    }

    fn stage(&self, _: &Srs, assignment: Assignment) -> Result<Staged, ProveError> {
        let density = &assignment.density;
        Ok(Staged {
            variables: Variables {
                inputs: integers(&assignment.inputs),
                aux: integers(&assignment.aux),
                a_aux: Arc::new(tracker(&density.a_aux)),
                b_inputs: Arc::new(tracker(&density.b_inputs)),
                b_aux: Arc::new(tracker(&density.b_aux)),
            },
            rows: [assignment.a, assignment.b, assignment.c],
        })
    }

    fn kernels(
        &self,
        srs: &Srs,
        staged: Staged,
        timings: &mut Timings,
    ) -> Result<(KernelSums, Variables), ProveError> {
        let h = timings.measure(Phase::Quotient, || self.quotient(staged.rows))?;
        let h = timings.measure(Phase::MsmH, || self.msm(&srs.h, 0, FullDensity, &h))?;
        let v = staged.variables;
        let l = timings.measure(Phase::MsmL, || self.msm(&srs.l, 0, FullDensity, &v.aux))?;
        let a = timings.measure(Phase::MsmA, || {
            // All inputs occur in A.
            let inputs: G1Projective = self.msm(&srs.a, 0, FullDensity, &v.inputs)?;
            Ok(inputs + self.msm(&srs.a, v.inputs.len(), v.a_aux.clone(), &v.aux)?)
        })?;
        let b_g1 = timings.measure(Phase::MsmBG1, || self.b::<G1Affine>(&srs.b_g1, &v))?;
        Ok((KernelSums { h, l, a, b_g1 }, v))
    }

    fn b_g2(&self, srs: &Srs, variables: Variables) -> Result<G2Projective, ProveError> {
        self.b::<G2Affine>(&srs.b_g2, &variables)
    }
}

impl Cpu {
    /// Σ w_i B_i over all variables.
    fn b<G>(&self, points: &Arc<Vec<G>>, v: &Variables) -> Result<G::Curve, ProveError>
    where
        G: PrimeCurveAffine<Scalar = Scalar>,
    {
        let first_aux = v.b_inputs.get_total_density();
        let inputs = self.msm(points, 0, v.b_inputs.clone(), &v.inputs)?;
        Ok(inputs + self.msm(points, first_aux, v.b_aux.clone(), &v.aux)?)
    }
}

/// The arithmetic fails for wrong lengths only.
fn refused(error: impl std::fmt::Display) -> ProveError {
    ProveError::Input(error.to_string())
}

fn integers(scalars: &[Scalar]) -> Integers {
    Arc::new(scalars.par_iter().map(Scalar::to_repr).collect())
}

fn tracker(bitmap: &Bitmap) -> DensityTracker {
    let mut tracker = DensityTracker::new();
    for i in 0..bitmap.len() {
        tracker.add_element();
        if bitmap.get(i) {
            tracker.inc(i);
        }
    }
    tracker
}

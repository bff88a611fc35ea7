//! Development parameters: the trusted setup of Groth16 (Groth 2016, section 3.2, "Setup") run by one party from a seed,
//! and therefore insecure. The files are those of the upstream library.

mod cache;
mod qap;
mod trapdoor;

use std::{fs, io, path::Path};

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_synth::{
    circuit::CircuitId,
    error::InputError,
    porep,
    r1cs::{R1cs, RecordError},
};
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use rayon::prelude::*;

pub use cache::{development_folder, ensure};
pub use trapdoor::{DERIVATION, Trapdoor};

use crate::{
    arith::fixed_base::{fixed_base_g1, fixed_base_g2},
    params::{Digest, Files, Sidecar},
    srs::Writer,
};

/// Scalars multiplied at a time, between two reports of progress. Each time a table of multiples is made anew, which
/// costs a thirtieth of the work at this size.
const CHUNK: usize = 1 << 20;

/// Why parameters could not be made.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// No such circuit.
    #[error(transparent)]
    Circuit(#[from] InputError),
    /// The circuit cannot be recorded.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// A variable that occurs in no constraint could take any value.
    #[error("auxiliary variable {0} of the circuit occurs in no constraint")]
    Unconstrained(usize),
    /// The operating system's word.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: String,
        /// What it said.
        error: io::Error,
    },
}

/// Steps of the work, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The constraint system is being recorded.
    Recording,
    /// The polynomials are being evaluated.
    Evaluating,
    /// So many points are written, of so many.
    Points {
        /// Points written.
        done: u64,
        /// Points in all.
        total: u64,
    },
}

/// Makes the parameter files of a circuit in `dir`, with the sidecar that calls them insecure. Deterministic in `seed`;
/// parallel on the current rayon pool. Each file appears under its name only when it is complete.
pub fn generate(
    circuit: CircuitId,
    seed: &str,
    dir: &Path,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(Files, Sidecar), GenerateError> {
    let files = Files::of(circuit, dir)?;
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error| GenerateError::Io { path, error }
    };
    fs::create_dir_all(dir).map_err(io(dir))?;
    progress(Progress::Recording);
    let r1cs = porep::record(circuit)??;
    let trapdoor = Trapdoor::derive(circuit, seed);

    let mut writer = Writer::create(&files.params).map_err(io(&files.params))?;
    let vk = write_parameters(&r1cs, &trapdoor, &mut writer, progress).map_err(|e| match e {
        WriteError::Unconstrained(i) => GenerateError::Unconstrained(i),
        WriteError::Io(error) => io(&files.params)(error),
    })?;
    let write_vk = || -> io::Result<Digest> {
        let mut writer = Writer::create(&files.vk)?;
        writer.verifying_key(&vk)?;
        writer.finish(&files.vk)
    };
    let vk_digest = write_vk().map_err(io(&files.vk))?;
    // The sidecar goes first, its digests known: parameters of ours never lie about without it.
    let params_digest = writer.digest();
    let sidecar = Sidecar::new(circuit, seed, DERIVATION, params_digest, vk_digest);
    sidecar.write(&files.sidecar).map_err(io(&files.sidecar))?;
    writer.finish(&files.params).map_err(io(&files.params))?;
    Ok((files, sidecar))
}

/// Why [`write_parameters`] stopped.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// Auxiliary variable that occurs nowhere.
    Unconstrained(usize),
    /// The file.
    Io(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes the parameters of any constraint system and returns the verifying key.
pub(crate) fn write_parameters(
    r1cs: &R1cs,
    trapdoor: &Trapdoor,
    writer: &mut Writer,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<VerifyingKey<Bls12>, WriteError> {
    progress(Progress::Evaluating);
    let qap = qap::evaluate(r1cs, trapdoor.tau);
    let (gamma_inverse, delta_inverse) = (invert_nonzero(trapdoor.gamma), invert_nonzero(trapdoor.delta));
    // β A_i(τ) + α B_i(τ) + C_i(τ), over γ for public inputs and over δ for auxiliary variables.
    let combined = |range: std::ops::Range<usize>, scale: Scalar| -> Vec<Scalar> {
        range
            .into_par_iter()
            .map(|i| (trapdoor.beta * qap.a[i] + trapdoor.alpha * qap.b[i] + qap.c[i]) * scale)
            .collect()
    };
    let ic = combined(0..r1cs.num_inputs, gamma_inverse);
    let l = combined(r1cs.num_inputs..r1cs.num_variables(), delta_inverse);
    if let Some(i) = l.iter().position(|s| bool::from(s.is_zero())) {
        return Err(WriteError::Unconstrained(i));
    }
    let occurring = |values: &[Scalar]| -> Vec<Scalar> {
        let occurs = |s: &&Scalar| !bool::from(s.is_zero());
        values.iter().filter(occurs).copied().collect()
    };
    let (a, b) = (occurring(&qap.a), occurring(&qap.b));

    let domain = 1usize << r1cs.log_domain();
    let h_count = domain - 1;
    let total = h_count + l.len() + a.len() + 2 * b.len();
    let g1 = |scalars: &[Scalar]| fixed_base_g1(&G1Affine::generator(), scalars);
    let g2 = |scalars: &[Scalar]| fixed_base_g2(&G2Affine::generator(), scalars);
    let vk = verifying_key(trapdoor, &g1(&ic));
    writer.verifying_key(&vk)?;

    let mut done = 0;
    let mut report = |points: usize| {
        done += points as u64;
        let total = total as u64;
        progress(Progress::Points { done, total });
    };
    // τ^i t(τ) / δ, made as they are needed.
    writer.begin_list(h_count)?;
    let step = qap.vanishing * delta_inverse;
    for first in (0..h_count).step_by(CHUNK) {
        let count = CHUNK.min(h_count - first);
        let mut power = trapdoor.tau.pow_vartime([first as u64]) * step;
        let scalars: Vec<_> = (0..count)
            .map(|_| {
                let this = power;
                power *= trapdoor.tau;
                this
            })
            .collect();
        writer.g1(&g1(&scalars))?;
        report(count);
    }
    for scalars in [&l, &a, &b] {
        writer.begin_list(scalars.len())?;
        for chunk in scalars.chunks(CHUNK) {
            writer.g1(&g1(chunk))?;
            report(chunk.len());
        }
    }
    writer.begin_list(b.len())?;
    for chunk in b.chunks(CHUNK) {
        writer.g2(&g2(chunk))?;
        report(chunk.len());
    }
    Ok(vk)
}

fn verifying_key(trapdoor: &Trapdoor, ic: &[G1Affine]) -> VerifyingKey<Bls12> {
    let g1 = |scalar: Scalar| -> G1Affine { (G1Projective::generator() * scalar).to_affine() };
    let g2 = |scalar: Scalar| -> G2Affine { (G2Projective::generator() * scalar).to_affine() };
    VerifyingKey {
        alpha_g1: g1(trapdoor.alpha),
        beta_g1: g1(trapdoor.beta),
        beta_g2: g2(trapdoor.beta),
        gamma_g2: g2(trapdoor.gamma),
        delta_g1: g1(trapdoor.delta),
        delta_g2: g2(trapdoor.delta),
        ic: ic.to_vec(),
    }
}

fn invert_nonzero(scalar: Scalar) -> Scalar {
    Option::from(scalar.invert()).expect("a trapdoor has no zero")
}

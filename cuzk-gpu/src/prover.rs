//! The seam between a proof's phases and whatever computes them: stage → kernels (under the device's lock) → finish
//! (outside it). See Groth, "On the Size of Pairing-based Non-interactive Arguments" (2016), section 3.2, for the proof
//! elements.

use std::{fmt, sync::Arc};

use bellperson::groth16::{Proof, VerifyingKey};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use cuzk_synth::{planes::Rows, r1cs::R1cs, synthesis::Synthesis, witness::CompactWitness};
use ff::Field;
use group::{Curve, prime::PrimeCurveAffine};
use rand::RngCore;

use crate::timing::{Phase, Timings};

/// Why a partition could not be proven.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProveError {
    /// The parameters or the assignment are not what they should be: no device can prove it.
    #[error("{0}")]
    Input(String),
    /// The device failed; another one, or a second try, may do.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A device that failed a partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}: {what}")]
pub struct DeviceError {
    /// The device.
    pub device: String,
    /// In which way.
    pub fault: Fault,
    /// What happened, with the device's name and sizes.
    pub what: String,
}

/// The ways in which a device fails. What follows from each is for the scheduler to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The partition does not fit what the device has prepared for its circuit.
    Unfit,
    /// An allocation failed.
    Memory,
    /// A launch or a copy was refused.
    Launch,
    /// An error after which every call of the context fails.
    Context,
    /// The device does not answer any more.
    Gone,
    /// Work took longer than its watchdog allows.
    Watchdog,
    /// What it computed does not verify.
    WrongProof,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Unfit, Self::Memory, Self::Launch, Self::Context, Self::Gone, Self::Watchdog, Self::WrongProof];

    /// Name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unfit => "unfit",
            Self::Memory => "memory",
            Self::Launch => "launch",
            Self::Context => "context",
            Self::Gone => "gone",
            Self::Watchdog => "watchdog",
            Self::WrongProof => "wrong_proof",
        }
    }

    /// Whether the device must not be given more work as it is. Otherwise only this partition has to go elsewhere.
    pub const fn is_sickness(self) -> bool {
        !matches!(self, Self::Unfit | Self::Memory)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfit => "the partition does not fit",
            Self::Memory => "out of memory",
            Self::Launch => "a launch failed",
            Self::Context => "its context is lost",
            Self::Gone => "it is gone",
            Self::Watchdog => "it took too long",
            Self::WrongProof => "a wrong proof",
        })
    }
}

impl ProveError {
    /// The fault, if it was the device's: then another device may prove the partition.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Input(_) => None,
            Self::Device(error) => Some(error.fault),
        }
    }
}

/// The two random scalars that make a proof zero-knowledge.
#[derive(Clone, Copy, Debug)]
pub struct Blinding {
    /// Blinds A.
    pub r: Scalar,
    /// Blinds B.
    pub s: Scalar,
}

impl Blinding {
    /// Draws both. In service the generator must be the operating system's.
    pub fn random(mut rng: impl RngCore) -> Self {
        Self { r: Scalar::random(&mut rng), s: Scalar::random(&mut rng) }
    }
}

/// What is to be proven: a circuit's constraint system and a witness of it.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The constraint system, shared by all partitions of the circuit.
    pub r1cs: Arc<R1cs>,
    /// The values of its variables.
    pub witness: CompactWitness,
    /// The values of its constraints' factors, A·w and B·w. Without them the matrices are multiplied with the witness.
    pub rows: Option<Rows>,
    /// Whether it goes before others that wait for a device.
    pub urgent: bool,
    /// Who is told of each phase of [`crate::device::Device::prove`] when it begins.
    pub watcher: Watcher,
}

/// Somebody who is told what is being done with a partition; by default nobody.
#[derive(Clone, Default)]
pub struct Watcher(Option<Arc<dyn Fn(Phase) + Send + Sync>>);

impl Watcher {
    /// Tells `tell`, which must return at once: the device's lock may be held.
    pub fn new(tell: impl Fn(Phase) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// A phase begins.
    pub fn enter(&self, phase: Phase) {
        if let Some(tell) = &self.0 {
            tell(phase);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watcher(somebody)" } else { "Watcher(nobody)" })
    }
}

impl Partition {
    /// A circuit and what its synthesis left.
    pub fn new(r1cs: Arc<R1cs>, Synthesis { witness, rows }: Synthesis) -> Self {
        Self { r1cs, witness, rows, urgent: false, watcher: Watcher::default() }
    }

    /// Whether there is a value for every variable, and for every constraint if for any.
    ///
    /// # Errors
    /// What does not fit, with both numbers.
    pub fn is_whole(&self) -> Result<(), ProveError> {
        let (inputs, aux) = (self.witness.inputs().len(), self.witness.num_aux());
        if (inputs, aux) != (self.r1cs.num_inputs, self.r1cs.num_aux) {
            return Err(ProveError::Input(format!(
                "the witness has {inputs} public inputs and {aux} auxiliary variables, the circuit {} and {}",
                self.r1cs.num_inputs, self.r1cs.num_aux
            )));
        }
        let constraints = self.r1cs.num_constraints();
        for (name, planes) in self.rows.iter().flat_map(|rows| [("A", &rows.a), ("B", &rows.b)]) {
            if planes.len() != constraints {
                return Err(ProveError::Input(format!(
                    "{name}·w has {} values, the circuit {constraints} constraints",
                    planes.len()
                )));
            }
        }
        Ok(())
    }
}

/// The sums that the kernel phase leaves behind.
#[derive(Clone, Copy, Debug)]
pub struct KernelSums {
    /// Σ h_i H_i.
    pub h: G1Projective,
    /// Σ w_i L_i over auxiliary variables.
    pub l: G1Projective,
    /// Σ w_i A_i over all variables.
    pub a: G1Projective,
    /// Σ w_i B_i in G1 over all variables.
    pub b_g1: G1Projective,
}

/// A circuit's proving parameters, in whatever form a backend works on.
pub trait ProvingKey: Send + Sync {
    /// The verifying key, for the epilogue.
    fn vk(&self) -> &VerifyingKey<Bls12>;

    /// Whether the parameters are those of this constraint system, as far as that can be told without proving.
    ///
    /// # Errors
    /// What does not fit, with both numbers.
    fn fits(&self, r1cs: &R1cs) -> Result<(), String>;
}

/// What computes the phases of a partition.
pub trait Backend: Send + Sync {
    /// Parameters as this backend takes them.
    type Key: ProvingKey;
    /// A partition, ready for the kernel phase.
    type Staged: Send;
    /// What the kernels leave for the finish.
    type Rest: Send;

    /// A name for logs and results, such as "cpu" or a device's UUID.
    fn name(&self) -> &str;

    /// Prepares a partition. Runs outside the lock, at the same time as other partitions' kernels.
    fn stage(&self, key: &Self::Key, partition: &Partition) -> Result<Self::Staged, ProveError>;

    /// Everything that needs the device. Runs under its lock, and leaves nothing running when it returns.
    fn kernels(&self, key: &Self::Key, staged: Self::Staged, timings: &mut Timings) -> Result<Self::Rest, ProveError>;

    /// What is left: the kernels' sums as points, and Σ w_i B_i in G2 over all variables. Outside the lock, on the CPU, while
    /// the next partition's kernels run.
    fn finish(&self, key: &Self::Key, rest: Self::Rest) -> Result<(KernelSums, G2Projective), ProveError>;
}

/// Puts the proof together:
/// A = α + Σ w_i A_i + r δ, B = β + Σ w_i B_i + s δ, C = Σ w_i L_i + Σ h_i H_i + s A + r B − r s δ.
///
/// # Errors
/// If δ is the identity: then somebody is trying to subvert the parameters.
pub fn epilogue(
    vk: &VerifyingKey<Bls12>,
    sums: &KernelSums,
    b_g2: G2Projective,
    Blinding { r, s }: Blinding,
) -> Result<Proof<Bls12>, ProveError> {
    if bool::from(vk.delta_g1.is_identity() | vk.delta_g2.is_identity()) {
        return Err(ProveError::Input(
            "the verifying key's delta is the identity: these parameters are subverted".to_owned(),
        ));
    }
    let a = sums.a + vk.alpha_g1 + vk.delta_g1 * r;
    let b = b_g2 + vk.beta_g2 + vk.delta_g2 * s;
    let b_g1 = sums.b_g1 + vk.beta_g1 + vk.delta_g1 * s;
    let c = sums.l + sums.h + a * s + b_g1 * r - vk.delta_g1 * (r * s);
    Ok(Proof { a: a.to_affine(), b: b.to_affine(), c: c.to_affine() })
}

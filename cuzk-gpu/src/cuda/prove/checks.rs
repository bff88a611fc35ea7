//! Whole proofs on a device, byte for byte those of the CPU with the same blinding.

use std::sync::Arc;

use bellperson::groth16::{Proof, verify_proof};
use blstrs::Bls12;
use cuzk_synth::{circuit::CircuitId, porep::PorepTask, r1cs::R1cs, sample};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_chacha::ChaCha8Rng;

use super::{Cuda, DeviceKey, DevicePoints};
use crate::{
    arith::Backend as Arithmetic,
    cpu::Cpu,
    cuda::{
        gpu::Gpu,
        harness::Check,
        plan::{BG2, Card, Config, MemoryPlan, Room, Rows, Shape},
        stream::Stream,
    },
    device::Device,
    generate,
    prover::{Blinding, Partition},
    srs::{self, Srs, Watch},
    toy::{Toy, trapdoor},
};

/// The checks.
pub const CHECKS: &[Check] =
    &[Check { name: "prove/toy circuits", run: toy_circuits }, Check { name: "prove/2 KiB PoRep", run: porep }];

type Outcome = Result<(), String>;

/// A circuit with parameters, on a device and on the host.
pub(super) struct Pair {
    pub device: Device<Cuda>,
    pub key: DeviceKey,
    pub cpu: Device<Cpu>,
    pub srs: Arc<Srs>,
    pub r1cs: Arc<R1cs>,
}

impl Pair {
    /// `read` makes the parameters with points of G1 for an arithmetic.
    pub(super) fn new(
        gpu: &Gpu,
        r1cs: Arc<R1cs>,
        workers: usize,
        read: impl Fn(Arithmetic) -> Srs,
    ) -> Result<Self, String> {
        let (portable, host) = (read(Arithmetic::Portable), Arc::new(read(Arithmetic::current())));
        let shape = Shape::of(&r1cs, Room::for_bits(r1cs.num_variables(), r1cs.num_constraints()));
        let run = || {
            let card = Card::new(gpu.info(), gpu.free_memory()?);
            let plan = MemoryPlan::choose(&shape, &card, &config(workers)).map_err(|e| gpu.misuse(e.to_string()))?;
            let points = [&portable.h, &portable.l, &portable.a, &portable.b_g1];
            let points = DevicePoints::upload(&Stream::new(gpu)?, &plan, points)?;
            DeviceKey::new(gpu, plan, points, host.clone(), r1cs.clone())
        };
        let key = run().map_err(|e| e.to_string())?;
        let cpu = Device::new(Cpu::new(Arithmetic::current()));
        let device = Device::new(Cuda::new(gpu.clone(), None));
        Ok(Self { device, key, cpu, srs: host, r1cs })
    }

    /// Proves on both, and compares.
    fn compare(&self, partition: &Partition, blinding: Blinding) -> Result<Proof<Bls12>, String> {
        let on_device = self.device.prove(&self.key, partition, blinding).map_err(|e| e.to_string())?.0;
        let on_cpu = self.cpu.prove(&self.srs, partition, blinding).map_err(|e| e.to_string())?.0;
        for (name, same) in
            [("A", on_device.a == on_cpu.a), ("B", on_device.b == on_cpu.b), ("C", on_device.c == on_cpu.c)]
        {
            if !same {
                return Err(format!("element {name} differs from the CPU's"));
            }
        }
        Ok(on_device)
    }
}

/// All of a large device.
pub(super) fn config(workers: usize) -> Config {
    Config { vram_limit: None, reserve: 1 << 30, workers, b_g2: BG2::Cpu, rows: Rows::Matrices, pinned_limit: 16 << 30 }
}

/// Toys of many sizes: the smallest domains, full ones, no variables in B, many and no public inputs.
fn toy_circuits(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let mut toys = vec![];
    for constraints in [1, 2, 5, 6, 13, 14, 30, 62, 500, 3000] {
        for percent_inputs in [0, 30] {
            toys.push((constraints, percent_inputs, constraints % 5 == 3));
        }
    }
    toys.extend([(20, 30, true), (20, 0, true), (2000, 5, true)]);
    for (constraints, percent_inputs, b_constant) in toys {
        let toy = Toy { seed: rng.r#gen(), constraints, percent_inputs, b_constant, blank: false };
        let partition = toy.partition();
        let parameters = toy.reference_parameters(&trapdoor());
        let read = |arithmetic| Toy::srs(&parameters, arithmetic);
        let mut run = || {
            let pair = Pair::new(gpu, partition.r1cs.clone(), 2, read)?;
            for _ in 0..2 {
                let proof = pair.compare(&partition, Blinding::random(&mut *rng))?;
                let inputs = &partition.witness.inputs()[1..];
                if !verify_proof(&pair.srs.prepared, &proof, inputs).map_err(|e| e.to_string())? {
                    return Err("both proofs are wrong".to_owned());
                }
            }
            Ok(())
        };
        run().map_err(|error| format!("{toy:?}: {error}"))?;
    }
    Ok(())
}

/// Parameters of a 2 KiB PoRep, made now, and its constraint system.
pub(super) fn porep_pair(gpu: &Gpu, rng: &mut ChaCha8Rng, workers: usize) -> Result<Pair, String> {
    let circuit: CircuitId = "porep-2k".parse().map_err(|e| format!("{e:?}"))?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let seed = format!("check {}", rng.r#gen::<u64>());
    let (files, _) = generate::generate(circuit, &seed, folder.path(), &|_| ()).map_err(|e| e.to_string())?;
    let r1cs = cuzk_synth::porep::record(circuit).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    let read = |arithmetic| {
        let forms = [arithmetic, Arithmetic::current()];
        srs::read_with(&files.params, forms, &Watch::nobody()).expect("the file was made a moment ago")
    };
    Pair::new(gpu, Arc::new(r1cs), workers, read)
}

/// The partitions of the bundled samples that are of this circuit.
pub(super) fn porep_partitions(pair: &Pair) -> Result<Vec<(PorepTask, Partition)>, String> {
    let partition = |sample: &sample::Sample| {
        let task = PorepTask::check(sample.c1, &sample.claims).map_err(|e| e.to_string())?;
        let witness = task.witness(0).map_err(|e| e.to_string())?;
        Ok((task, Partition::new(pair.r1cs.clone(), witness.into())))
    };
    sample::ALL.iter().map(partition).collect()
}

/// Real PoReps.
fn porep(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let pair = porep_pair(gpu, rng, 2)?;
    for (task, partition) in porep_partitions(&pair)? {
        let proof = pair.compare(&partition, Blinding::random(&mut StdRng::seed_from_u64(rng.r#gen())))?;
        if !task.verify_partition(0, &pair.srs.prepared, &proof).map_err(|e| e.to_string())? {
            return Err("both proofs are wrong".to_owned());
        }
    }
    Ok(())
}

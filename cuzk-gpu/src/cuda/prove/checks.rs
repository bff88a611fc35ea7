//! Whole proofs on a device, byte for byte those of the CPU with the same blinding.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use bellperson::groth16::{Proof, verify_proof};
use blstrs::Bls12;
use cuzk_synth::{circuit::CircuitId, porep::PorepTask, r1cs::R1cs, sample};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_chacha::ChaCha8Rng;

use super::{Circuit, Cuda, DeviceKey, DeviceOptions, Devices, Source};
use crate::{
    arith::Backend as Arithmetic,
    cpu::Cpu,
    cuda::{
        driver::DeviceInfo,
        gpu::Gpu,
        harness::Check,
        launch::{Args, Grid},
        plan::{BG2, Card, Config, MemoryPlan, Room, Rows, Shape},
        points::Checks,
        stream::Stream,
    },
    device::{Device, Injected},
    generate,
    prover::{Blinding, Fault, Partition, ProveError},
    srs::{self, Srs, Watch},
    timing::{LockUse, Phase, Timings},
    toy::{Toy, trapdoor},
};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check { name: "prove/toy circuits", run: toy_circuits },
    Check { name: "prove/2 KiB PoRep", run: porep },
    Check { name: "prove/workers take turns", run: workers },
    Check { name: "prove/failures", run: failures },
];

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
    /// With the parameters in a file, on a device that is used as `config` says.
    pub(super) fn new(gpu: &Gpu, r1cs: Arc<R1cs>, path: &Path, config: &Config) -> Result<Self, String> {
        let srs = Arc::new(srs::read(path, Arithmetic::current()).map_err(|e| e.to_string())?);
        let shape = Shape::of(&r1cs, Room::for_bits(r1cs.num_variables(), r1cs.num_constraints()));
        let run = || {
            let card = Card::new(gpu.info(), gpu.free_memory()?);
            let plan = MemoryPlan::choose(&shape, &card, config).map_err(|e| gpu.misuse(e.to_string()))?;
            let source = Source { path, checks: Checks::FILE, readers: 4, watch: &Watch::nobody() };
            DeviceKey::new(gpu, plan, &source, srs.clone(), r1cs.clone())
        };
        let key = run().map_err(|e| e.to_string())?;
        let cpu = Device::new(Cpu::new(Arithmetic::current()));
        let device = Device::new(Cuda::new(gpu.clone(), None));
        Ok(Self { device, key, cpu, srs, r1cs })
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
        let mut run = || {
            let mut file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
            parameters.write(&mut file).map_err(|e| e.to_string())?;
            let pair = Pair::new(gpu, partition.r1cs.clone(), file.path(), &config(2))?;
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

/// Parameters of a 2 KiB PoRep, made now in a folder, and its constraint system.
pub(super) fn porep_parameters(rng: &mut ChaCha8Rng, folder: &Path) -> Result<(PathBuf, Arc<R1cs>), String> {
    let circuit: CircuitId = "porep-2k".parse().map_err(|e| format!("{e:?}"))?;
    let seed = format!("check {}", rng.r#gen::<u64>());
    let (files, _) = generate::generate(circuit, &seed, folder, &|_| ()).map_err(|e| e.to_string())?;
    let r1cs = cuzk_synth::porep::record(circuit).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    Ok((files.params, Arc::new(r1cs)))
}

/// The same on a device and on the host.
pub(super) fn porep_pair(gpu: &Gpu, rng: &mut ChaCha8Rng, workers: usize) -> Result<Pair, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (params, r1cs) = porep_parameters(rng, folder.path())?;
    Pair::new(gpu, r1cs, &params, &config(workers))
}

/// Kernel phases never overlap, the CPU's parts run behind them, and every proof is the CPU's.
fn workers(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    for workers in [1, 2, 3] {
        let pair = &porep_pair(gpu, rng, workers)?;
        let partitions = &porep_partitions(&pair.r1cs)?;
        let blinding = Blinding::random(&mut *rng);
        let expected = partitions.iter().map(|(_, partition)| pair.cpu.prove(&pair.srs, partition, blinding));
        let expected = &expected.map(|p| Ok(p.map_err(|e| e.to_string())?.0)).collect::<Result<Vec<_>, String>>()?;
        let work = |worker: usize| {
            let turn = |i: usize| {
                let which = (worker + i) % partitions.len();
                let proved = pair.device.prove(&pair.key, &partitions[which].1, blinding);
                let (proof, timings) = proved.map_err(|e| e.to_string())?;
                match proof == expected[which] {
                    true => Ok(timings),
                    false => Err(format!("{workers} workers: a proof differs from the CPU's")),
                }
            };
            (0..4).map(turn).collect::<Result<Vec<_>, String>>()
        };
        let timings = thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<Vec<Timings>, String>>| {
                thread.join().map_err(|_| "a worker panicked".to_owned())?
            };
            threads.into_iter().map(join).collect::<Result<Vec<_>, String>>()
        })?;
        let lock_use = LockUse::of(&timings.concat());
        if lock_use.collision.is_some() || (workers > 1 && lock_use.hidden_tails == 0) {
            return Err(format!("{workers} workers: {lock_use:?}"));
        }
    }
    Ok(())
}

/// A toy on all devices of a process, and its proof by the CPU.
struct OnDevices {
    devices: Devices,
    circuit: Arc<Circuit>,
    partition: Partition,
    blinding: Blinding,
    expected: Proof<Bls12>,
    _file: tempfile::NamedTempFile,
}

impl OnDevices {
    fn new(info: DeviceInfo, rng: &mut ChaCha8Rng) -> Result<Self, String> {
        let toy = Toy { seed: rng.r#gen(), constraints: 100, percent_inputs: 10, b_constant: false, blank: false };
        let (parameters, partition) = (toy.reference_parameters(&trapdoor()), toy.partition());
        let mut file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        parameters.write(&mut file).map_err(|e| e.to_string())?;
        let options = DeviceOptions {
            workers: 2,
            vram_limit: Some(4 << 30),
            vram_reserve: 0,
            pinned_limit: 4 << 30,
            b_g2: BG2::Cpu,
            checks: Checks::FILE,
            readers: 2,
            finish: None,
        };
        let devices = Devices::open(vec![info], options).map_err(|e| e.to_string())?;
        let host = Arc::new(Toy::srs(&parameters, Arithmetic::current()));
        let params = file.path().to_owned();
        let circuit = devices.load(host.clone(), partition.r1cs.clone(), params, &Watch::nobody())?;
        let blinding = Blinding::random(&mut *rng);
        let on_cpu = Device::new(Cpu::new(Arithmetic::current())).prove(&host, &partition, blinding);
        let expected = on_cpu.map_err(|e| e.to_string())?.0;
        Ok(Self { devices, circuit, partition, blinding, expected, _file: file })
    }

    fn prove(&self) -> Result<Proof<Bls12>, ProveError> {
        self.devices.prove(0, &self.circuit, &self.partition, self.blinding).map(|(proof, _)| proof)
    }

    fn proves(&self) -> Outcome {
        match self.prove().map_err(|e| e.to_string())? == self.expected {
            true => Ok(()),
            false => Err("a proof differs from the CPU's".to_owned()),
        }
    }

    fn revive(&self) -> Outcome {
        self.devices.revive(0).map_err(|e| e.to_string())
    }
}

/// After each kind of failure, and with a new context, proofs are right.
fn failures(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let toy = OnDevices::new(gpu.info().clone(), rng)?;
    let phases = [Phase::Stage, Phase::LockHold, Phase::MsmBG2, Phase::Epilogue];
    for (fault, phase) in Fault::ALL.into_iter().flat_map(|fault| phases.map(|phase| (fault, phase))) {
        toy.devices.device(0).map_err(|e| e.to_string())?.inject(Injected { phase, fault });
        match toy.prove() {
            Err(error) if error.fault() == Some(fault) => {}
            Ok(proof) if (fault, phase) == (Fault::WrongProof, Phase::Epilogue) && proof != toy.expected => {}
            other => return Err(format!("{fault:?} in {phase:?} gave {other:?}")),
        }
        if fault.is_sickness() {
            toy.revive()?;
        }
        toy.proves().map_err(|error| format!("after {fault:?} in {phase:?}: {error}"))?;
    }
    Ok(())
}

/// Breaks the context of a device for good: proofs fail and say why; then the device proves with a new context, or is refused
/// one and gets no work. (The driver of CUDA 13.0 refuses: after such an error a process gets no context on the device any
/// more.) Nothing can be checked on the device afterwards in this process.
pub fn lost_context(info: DeviceInfo, rng: &mut ChaCha8Rng) -> Outcome {
    let toy = OnDevices::new(info, rng)?;
    toy.proves()?;
    {
        let device = toy.devices.device(0).map_err(|e| e.to_string())?;
        let gpu = device.backend().gpu();
        let run = || {
            let stream = Stream::new(gpu)?;
            let nowhere = Args::new().value(1u64 << 20).value(1u32).value(0u64);
            // SAFETY: none: the kernel writes to where no memory is, and the context is lost, as is the intention.
            unsafe { gpu.function("probe", "probe_count")?.launch(&stream, Grid::new(1, 1), &nowhere)? };
            stream.wait()
        };
        match run().map_err(|error| error.fault()) {
            Err(Fault::Context) => {}
            other => return Err(format!("a write to nowhere gave {other:?}")),
        }
    }
    for _ in 0..2 {
        match toy.prove().map_err(|error| error.fault()) {
            Err(Some(Fault::Context)) => {}
            other => return Err(format!("a proof without a context gave {other:?}")),
        }
    }
    match toy.devices.revive(0) {
        Ok(()) => toy.proves(),
        Err(error) if error.fault() == Some(Fault::Context) => match toy.prove().map_err(|error| error.fault()) {
            Err(Some(Fault::Gone)) => Ok(()),
            other => Err(format!("a proof on a device that got no context gave {other:?}")),
        },
        Err(error) => Err(error.to_string()),
    }
}

/// The partitions of the bundled samples that are of this circuit.
pub(super) fn porep_partitions(r1cs: &Arc<R1cs>) -> Result<Vec<(PorepTask, Partition)>, String> {
    let partition = |sample: &sample::Sample| {
        let task = PorepTask::check(sample.c1, &sample.claims).map_err(|e| e.to_string())?;
        let witness = task.witness(0).map_err(|e| e.to_string())?;
        Ok((task, Partition::new(r1cs.clone(), witness.into())))
    };
    sample::ALL.iter().map(partition).collect()
}

/// Real PoReps.
fn porep(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let pair = porep_pair(gpu, rng, 2)?;
    for (task, partition) in porep_partitions(&pair.r1cs)? {
        let proof = pair.compare(&partition, Blinding::random(&mut StdRng::seed_from_u64(rng.r#gen())))?;
        if !task.verify_partition(0, &pair.srs.prepared, &proof).map_err(|e| e.to_string())? {
            return Err("both proofs are wrong".to_owned());
        }
    }
    Ok(())
}

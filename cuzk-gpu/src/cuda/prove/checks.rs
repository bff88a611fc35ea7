//! Whole proofs on a device, byte for byte those of the CPU with the same blinding.

use std::{sync::Arc, thread};

use bellperson::groth16::{Proof, verify_proof};
use blstrs::Bls12;
use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Circuit, DeviceOptions, Devices,
    inputs::{BOTH, Pair, Porep, WATCHDOG, config},
};
use crate::{
    arith::Backend as Arithmetic,
    cpu::Cpu,
    cuda::{
        driver::DeviceInfo,
        gpu::Gpu,
        harness::Check,
        launch::{Args, Grid},
        plan::{BG2, Rows},
        points::Checks,
        stream::Stream,
    },
    device::{Device, Injected},
    prover::{Blinding, Fault, Partition, ProveError},
    srs::Watch,
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
        let partition = toy.partition_with_rows();
        let parameters = toy.reference_parameters(&trapdoor());
        let mut run = |rows: Rows| {
            let mut file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
            parameters.write(&mut file).map_err(|e| e.to_string())?;
            let pair = Pair::new(gpu, partition.r1cs.clone(), file.path(), &config(2, rows))?;
            for _ in 0..2 {
                let proof = pair.compare(&partition, Blinding::random(&mut *rng))?;
                let inputs = &partition.witness.inputs()[1..];
                if !verify_proof(&pair.srs.prepared, &proof, inputs).map_err(|e| e.to_string())? {
                    return Err("both proofs are wrong".to_owned());
                }
            }
            Ok(())
        };
        for rows in BOTH {
            run(rows).map_err(|error| format!("{toy:?}, {rows:?}: {error}"))?;
        }
    }
    Ok(())
}

/// Kernel phases never overlap, the CPU's parts run behind them, and every proof is the CPU's.
fn workers(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let porep = Porep::new(rng)?;
    let partitions = &porep.partitions;
    for workers in [1, 2, 3] {
        let pair = &porep.pair(gpu, workers, Rows::Planes)?;
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
        let (parameters, partition) = (toy.reference_parameters(&trapdoor()), toy.partition_with_rows());
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
            watchdog: WATCHDOG,
            pools: None,
        };
        let devices = Devices::open(vec![info], options).map_err(|e| e.to_string())?;
        let host = Arc::new(Toy::srs(&parameters, Arithmetic::current()));
        let params = file.path().to_owned();
        let circuit = devices.load(host.clone(), partition.r1cs.clone(), Rows::Planes, params, &Watch::nobody())?;
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
    // A device without matrices.
    let without = Partition { rows: None, ..toy.partition.clone() };
    match toy.devices.prove(0, &toy.circuit, &without, toy.blinding).map_err(|error| error.fault()) {
        Err(Some(Fault::Unfit)) => toy.proves(),
        other => Err(format!("a partition without rows gave {other:?}")),
    }
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

/// Real PoReps.
fn porep(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let porep = Porep::new(rng)?;
    for rows in BOTH {
        let pair = porep.pair(gpu, 2, rows)?;
        for (task, partition) in &porep.partitions {
            let blinding = Blinding::random(&mut StdRng::seed_from_u64(rng.r#gen()));
            let proof = pair.compare(partition, blinding).map_err(|error| format!("{rows:?}: {error}"))?;
            if !task.verify_partition(0, &pair.srs.prepared, &proof).map_err(|e| e.to_string())? {
                return Err("both proofs are wrong".to_owned());
            }
        }
    }
    Ok(())
}

//! What checks and benches prove: circuits with parameters, on a device and on the host.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_synth::{circuit::CircuitId, porep::PorepTask, r1cs::R1cs, sample};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::{Cuda, DeviceKey, Source};
use crate::{
    arith::Backend as Arithmetic,
    cpu::Cpu,
    cuda::{
        gpu::Gpu,
        plan::{BG2, Card, Config, MemoryPlan, Room, Rows, Shape},
        points::Checks,
    },
    device::Device,
    generate,
    prover::{Blinding, Partition},
    srs::{self, Srs, Watch},
};

/// A circuit with parameters, on a device and on the host.
pub(super) struct Pair {
    pub device: Device<Cuda>,
    pub key: DeviceKey,
    pub cpu: Device<Cpu>,
    pub srs: Arc<Srs>,
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
            DeviceKey::new(gpu, plan, &source, WATCHDOG, srs.clone(), r1cs)
        };
        let key = run().map_err(|e| e.to_string())?;
        let cpu = Device::new(Cpu::new(Arithmetic::current()));
        let device = Device::new(Cuda::new(gpu.clone(), None));
        Ok(Self { device, key, cpu, srs })
    }

    /// Proves on both, and compares.
    pub(super) fn compare(&self, partition: &Partition, blinding: Blinding) -> Result<Proof<Bls12>, String> {
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
pub(super) fn config(workers: usize, rows: Rows) -> Config {
    Config { vram_limit: None, reserve: 1 << 30, workers, b_g2: BG2::Cpu, rows, pinned_limit: 16 << 30 }
}

/// How long a kernel phase may take.
pub(super) const WATCHDOG: Duration = Duration::from_secs(60);

/// The ways in which A·w and B·w come to a device.
pub(super) const BOTH: [Rows; 2] = [Rows::Matrices, Rows::Planes];

/// A 2 KiB PoRep with parameters of its own.
pub(super) struct Porep {
    pub params: PathBuf,
    pub r1cs: Arc<R1cs>,
    /// Those of the bundled samples.
    pub partitions: Vec<(PorepTask, Partition)>,
    _folder: TempDir,
}

impl Porep {
    pub(super) fn new(rng: &mut ChaCha8Rng) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let circuit: CircuitId = "porep-2k".parse().map_err(|e| format!("{e:?}"))?;
        let seed = format!("check {}", rng.r#gen::<u64>());
        let (files, _) = generate::generate(circuit, &seed, folder.path(), &|_| ()).map_err(|e| e.to_string())?;
        let r1cs = cuzk_synth::porep::record(circuit).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        let r1cs = Arc::new(r1cs);
        let partition = |sample: &sample::Sample| {
            let task = PorepTask::check(sample.c1, &sample.claims).map_err(|e| e.to_string())?;
            let synthesis = task.synthesize(0).map_err(|e| e.to_string())?;
            if synthesis.rows.is_none() {
                return Err(format!("{}: A·w and B·w did not come with the witness", sample.name));
            }
            Ok((task, Partition::new(r1cs.clone(), synthesis)))
        };
        let partitions = sample::ALL.iter().map(partition).collect::<Result<_, String>>()?;
        Ok(Self { params: files.params, r1cs, partitions, _folder: folder })
    }

    /// On a device and on the host.
    pub(super) fn pair(&self, gpu: &Gpu, workers: usize, rows: Rows) -> Result<Pair, String> {
        Pair::new(gpu, self.r1cs.clone(), &self.params, &config(workers, rows))
    }
}

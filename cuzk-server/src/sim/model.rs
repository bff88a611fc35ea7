//! Machines, and what the phases of a partition cost on them.

use cuzk_synth::circuit::{CircuitId, SectorSize};

use crate::memory::Shares;

/// A machine that proves.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// GPUs, all alike.
    pub devices: usize,
    /// Partitions worked on at once for each (`gpus.gpu_workers_per_device`).
    pub workers_per_device: usize,
    /// Whether a device takes one CRITICAL partition more.
    pub express: bool,
    /// CPU cores.
    pub cores: f64,
    /// Memory-bound tasks that run at full speed beside each other. With more, all slow down in proportion.
    pub lanes: f64,
    /// Partitions synthesized at once (`synthesis.workers`).
    pub synthesis_workers: usize,
    /// Partitions ready ahead of each device (`pipeline.lookahead`).
    pub lookahead: Option<usize>,
    /// Host memory.
    pub memory: Shares,
    /// Attempts at one partition.
    pub attempts: u32,
    /// What it costs to prove.
    pub costs: Costs,
}

/// What a partition costs, phase by phase. Times hold as long as nothing slows the task down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Host memory of the parameters, bytes.
    pub params_bytes: u64,
    /// Host memory of a partition in flight, bytes.
    pub partition_bytes: u64,
    /// Loading the parameters, seconds.
    pub load: f64,
    /// Making the witness.
    pub synthesis: Task,
    /// Before the lock: what is uploaded ahead.
    pub stage: Task,
    /// Under the lock, on the GPU, seconds.
    pub kernels: f64,
    /// On the CPU beside the kernels, from when the partition comes to the device; the lock is kept until it is done.
    pub beside: Task,
    /// After the lock: b_g2 where it is on the CPU, epilogue, verification, freeing.
    pub tail: Task,
}

/// A piece of work for the CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// How long it takes undisturbed.
    pub seconds: f64,
    /// Cores that it keeps busy meanwhile.
    pub cores: f64,
    /// Its share of the memory channels, in [`Machine::lanes`].
    pub lanes: f64,
}

/// No work.
pub const NOTHING: Task = Task { seconds: 0.0, cores: 0.0, lanes: 0.0 };

impl Costs {
    /// The same for a circuit whose partitions have `share` of the constraints.
    pub fn scaled(&self, share: f64) -> Self {
        let task = |t: Task| Task { seconds: t.seconds * share, ..t };
        let bytes = |b: u64| (b as f64 * share) as u64;
        Self {
            params_bytes: bytes(self.params_bytes),
            partition_bytes: bytes(self.partition_bytes),
            load: self.load * share,
            synthesis: task(self.synthesis),
            stage: task(self.stage),
            kernels: self.kernels * share,
            beside: task(self.beside),
            tail: task(self.tail),
        }
    }

    /// For a circuit, from those for 32 GiB sectors, by its constraints.
    pub fn of(&self, circuit: CircuitId) -> Self {
        match circuit.size {
            SectorSize::Gib32 | SectorSize::Gib64 => *self,
            SectorSize::Mib512 => self.scaled(0.15),
            SectorSize::Mib8 => self.scaled(0.05),
            SectorSize::Kib2 => self.scaled(0.02),
        }
    }
}

impl Machine {
    /// The machine of the published measurements (docs/results.md names them): 96 cores, 755 GiB, a 16 GB card, with the
    /// public daemon of that time.
    ///
    /// From the publication, under load: kernels 1.824 s; vectors prepared on one core beside them 1.909 s; b_g2 0.484 s; a
    /// call takes 3.76 s in all, so 1.36 s go to freeing and joining; ten syntheses at once; 69 GiB and 20 GiB a partition
    /// in flight. Calibrated by two of its lines: a synthesis alone takes 27.5 s (152 s a proof with 128 GiB, where two
    /// partitions fit), and 8.2 of its like share memory without loss (38 s a proof with two workers). The CPU times above
    /// are divided by the slow-down that follows, 1.38.
    pub fn published(workers_per_device: usize) -> Self {
        let one_thread = |loaded_seconds: f64| Task { seconds: loaded_seconds / 1.38, cores: 1.0, lanes: 1.0 };
        Self {
            devices: 1,
            workers_per_device,
            express: false,
            cores: 96.0,
            lanes: 8.2,
            synthesis_workers: 10,
            lookahead: None,
            memory: Shares { bodies: 1 << 30, queue: 4 << 30, work: 400 << 30 },
            attempts: 3,
            costs: Costs {
                params_bytes: 69 << 30,
                partition_bytes: 20 << 30,
                load: 60.0,
                synthesis: Task { seconds: 27.5, cores: 9.0, lanes: 1.0 },
                stage: one_thread(0.018),
                kernels: 1.824,
                beside: one_thread(1.909),
                tail: one_thread(0.484 + 1.362),
            },
        }
    }

    /// One to eight H200 and 16 cores or more, with what this program measures or aims at: a witness of 0.2 s on one core,
    /// 250 MB a partition, kernels of `kernels` seconds with b_g2 on the CPU, whose 1.7 M full scalars take 4 core seconds.
    pub fn ours(devices: usize, cores: usize, kernels: f64) -> Self {
        let pool = cores as f64 / 2.0;
        Self {
            devices,
            workers_per_device: 2,
            express: true,
            cores: cores as f64,
            lanes: cores as f64,
            synthesis_workers: (cores / 4).max(1),
            lookahead: None,
            memory: Shares::of(16 << 30, 4 << 30),
            attempts: 3,
            costs: Costs {
                // 48 GB of points are on the device; the host maps the rest and keeps what a load needs.
                params_bytes: 6 << 30,
                partition_bytes: 250 << 20,
                load: 30.0,
                synthesis: Task { seconds: 0.2, cores: 1.0, lanes: 1.0 },
                stage: Task { seconds: 0.01, cores: 0.1, lanes: 0.5 },
                kernels,
                beside: NOTHING,
                tail: Task { seconds: 4.0 / pool, cores: pool, lanes: 1.0 },
            },
        }
    }
}

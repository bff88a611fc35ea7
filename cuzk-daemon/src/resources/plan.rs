//! Divides what the machine has as the configuration says. Pure.

use std::fmt;

use cuzk_server::memory::Shares;

use super::Resources;
use crate::config::{ByteSize, Config, MemoryBudget};

/// How many threads and how much memory each part gets. Printed once at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Threads of the gRPC runtime: few, and never shared with proving, so that GetStatus answers under full load.
    pub rpc_threads: usize,
    /// CPU threads for synthesis and for proving on the CPU: one a physical core.
    pub compute_threads: usize,
    /// Partitions synthesized at once.
    pub synthesis_workers: usize,
    /// CPU threads for what is computed beside a GPU.
    pub finish_threads: usize,
    /// Host memory and how it is divided.
    pub memory: Shares,
}

/// There is not enough of something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The margin eats everything.
    #[error(
        "memory.safety_margin = {margin} leaves nothing of the {available} that this process may use; lower it, or set memory.total_budget"
    )]
    MarginTooLarge {
        /// The configured margin.
        margin: ByteSize,
        /// What there is.
        available: ByteSize,
    },
    /// Nobody knows how much memory there is.
    #[error("the kernel does not tell how much memory there is; set memory.total_budget")]
    UnknownMemory,
}

impl Plan {
    /// Divides the resources.
    pub fn new(resources: &Resources, config: &Config) -> Result<Self, PlanError> {
        let or_auto = |configured: u32| match configured {
            0 => resources.cores,
            threads => threads as usize,
        };
        let compute_threads = or_auto(config.synthesis.threads);
        let finish_threads = match config.finish.threads {
            0 => or_auto(config.gpus.gpu_threads),
            threads => threads as usize,
        };
        Ok(Self {
            rpc_threads: (resources.threads / 8).clamp(2, 4),
            compute_threads,
            synthesis_workers: match config.synthesis.workers {
                0 => compute_threads,
                workers => workers as usize,
            },
            finish_threads,
            memory: Shares::of(memory_budget(resources, config)?, config.scheduler.max_queued_bytes.bytes()),
        })
    }

    /// What the operator should know about this plan.
    pub fn warnings(&self, resources: &Resources) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(available) = resources.memory_bytes
            && self.memory.total() > available
        {
            warnings.push(format!(
                "memory.total_budget is more than the {} that this process may use: the kernel may kill it",
                rounded(available)
            ));
        }
        if self.memory.queue < ONE_REQUEST {
            warnings.push(format!(
                "memory.total_budget = {} leaves {} for queued requests, less than one of a 32 GiB sector takes ({})",
                rounded(self.memory.total()),
                rounded(self.memory.queue),
                rounded(ONE_REQUEST)
            ));
        }
        if self.compute_threads > resources.threads {
            warnings.push(format!(
                "synthesis.threads = {} is more than the {} CPUs that this process may use",
                self.compute_threads, resources.threads
            ));
        }
        warnings
    }
}

/// A PoRep request of a 32 GiB sector, rounded up.
const ONE_REQUEST: u64 = 64 << 20;

fn memory_budget(resources: &Resources, config: &Config) -> Result<u64, PlanError> {
    if let MemoryBudget::Fixed(size) = config.memory.total_budget {
        return Ok(size.bytes());
    }
    let available = resources.memory_bytes.ok_or(PlanError::UnknownMemory)?;
    let margin = config.memory.safety_margin;
    match available.checked_sub(margin.bytes()) {
        Some(budget) if budget > 0 => Ok(budget),
        _ => Err(PlanError::MarginTooLarge { margin, available: rounded(available) }),
    }
}

/// In whole MiB, for people.
fn rounded(bytes: u64) -> ByteSize {
    ByteSize::from_bytes(bytes >> 20 << 20)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} gRPC threads, {} compute threads for {} partitions at once, {} threads beside the GPU, {} of memory \
             ({} for requests in reception, {} for queued ones, {} for work)",
            self.rpc_threads,
            self.compute_threads,
            self.synthesis_workers,
            self.finish_threads,
            rounded(self.memory.total()),
            rounded(self.memory.bodies),
            rounded(self.memory.queue),
            rounded(self.memory.work)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting;

    const MACHINE: Resources = Resources { threads: 32, cores: 16, memory_bytes: Some(64 << 30) };

    fn config(budget: &str, margin: &str) -> Config {
        let mut config = Config::default();
        config.memory.total_budget = MemoryBudget::from_text(budget).expect("legal");
        config.memory.safety_margin = margin.parse().expect("legal");
        config
    }

    #[test]
    fn auto_takes_cores_and_memory_less_the_margin() {
        let plan = Plan::new(&MACHINE, &Config::default()).expect("enough");
        let memory = Shares { bodies: 1 << 30, queue: 4 << 30, work: 54 << 30 };
        let threads = Plan { rpc_threads: 4, compute_threads: 16, synthesis_workers: 16, finish_threads: 16, memory };
        assert_eq!(plan, threads);
        assert_eq!(plan.warnings(&MACHINE), [""; 0]);
        assert!(plan.to_string().contains("59GiB"), "{plan}");
    }

    #[test]
    fn what_is_configured_is_taken_and_excess_is_told() {
        let mut config = config("128GiB", "5GiB");
        config.synthesis.threads = 64;
        let plan = Plan::new(&MACHINE, &config).expect("as asked");
        assert_eq!((plan.compute_threads, plan.memory.total()), (64, 128 << 30));
        assert_eq!(plan.warnings(&MACHINE).len(), 2);
    }

    #[test]
    fn each_pool_has_a_key_of_its_own() {
        let mut config = config("512MiB", "5GiB");
        config.gpus.gpu_threads = 3;
        let plan = Plan::new(&MACHINE, &config).expect("as asked");
        assert_eq!((plan.synthesis_workers, plan.finish_threads), (16, 3));
        config.synthesis.workers = 2;
        config.finish.threads = 5;
        let plan = Plan::new(&MACHINE, &config).expect("as asked");
        assert_eq!((plan.synthesis_workers, plan.finish_threads), (2, 5));
        config.memory.total_budget = MemoryBudget::from_text("128MiB").expect("legal");
        let plan = Plan::new(&MACHINE, &config).expect("as asked");
        assert!(plan.warnings(&MACHINE)[0].contains("leaves 32MiB for queued requests"));
    }

    #[test]
    fn a_margin_above_everything_is_refused_with_both_numbers() {
        let error = Plan::new(&MACHINE, &config("auto", "64GiB")).unwrap_err().to_string();
        assert!(error.contains("safety_margin = 64GiB") && error.contains("memory.total_budget"), "{error}");
        let unknown = Resources { memory_bytes: None, ..MACHINE };
        assert_eq!(Plan::new(&unknown, &config("auto", "5GiB")), Err(PlanError::UnknownMemory));
        assert!(Plan::new(&unknown, &config("1GiB", "5GiB")).is_ok());
    }

    #[test]
    fn the_smallest_machine_has_reserved_rpc_threads() {
        let tiny = Resources { threads: 1, cores: 1, memory_bytes: Some(8 << 30) };
        let plan = Plan::new(&tiny, &Config::default()).expect("3 GiB are left");
        assert_eq!((plan.rpc_threads, plan.compute_threads), (2, 1));
    }
}

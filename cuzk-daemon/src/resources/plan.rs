//! Divides what the machine has as the configuration says. Pure.

use std::fmt;

use super::Resources;
use crate::config::{ByteSize, Config, MemoryBudget};

/// How many threads and how much memory each part gets. Printed once at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Threads of the gRPC runtime: few, and never shared with proving, so that GetStatus answers under full load.
    pub rpc_threads: usize,
    /// CPU threads for synthesis and for proving on the CPU: one a physical core.
    pub compute_threads: usize,
    /// CPU threads for what is computed beside a GPU.
    pub gpu_threads: usize,
    /// Host memory for parameters and partitions, in bytes.
    pub memory_budget: u64,
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
        Ok(Self {
            rpc_threads: (resources.threads / 8).clamp(2, 4),
            compute_threads: or_auto(config.synthesis.threads),
            gpu_threads: or_auto(config.gpus.gpu_threads),
            memory_budget: memory_budget(resources, config)?,
        })
    }

    /// What the operator should know about this plan.
    pub fn warnings(&self, resources: &Resources) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(available) = resources.memory_bytes
            && self.memory_budget > available
        {
            warnings.push(format!(
                "memory.total_budget is more than the {} that this process may use: the kernel may kill it",
                rounded(available)
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
            "{} gRPC threads, {} compute threads, {} threads beside the GPU, {} of memory",
            self.rpc_threads,
            self.compute_threads,
            self.gpu_threads,
            rounded(self.memory_budget)
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
        assert_eq!(plan, Plan { rpc_threads: 4, compute_threads: 16, gpu_threads: 16, memory_budget: 59 << 30 });
        assert_eq!(plan.warnings(&MACHINE), [""; 0]);
        assert!(plan.to_string().contains("59GiB"), "{plan}");
    }

    #[test]
    fn what_is_configured_is_taken_and_excess_is_told() {
        let mut config = config("128GiB", "5GiB");
        config.synthesis.threads = 64;
        let plan = Plan::new(&MACHINE, &config).expect("as asked");
        assert_eq!((plan.compute_threads, plan.memory_budget), (64, 128 << 30));
        assert_eq!(plan.warnings(&MACHINE).len(), 2);
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

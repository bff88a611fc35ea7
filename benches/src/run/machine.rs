//! Which class of machines this is. Ratios to scalar field products are a property of the processor's kind (how many vector
//! multipliers it has) and of the number of threads, so those make the class.

use std::{fs, thread};

use anyhow::{Context, Result};
use cuzk_gpu::arith::Backend;

/// A machine, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The class of its times, such as "cpu ifma GenuineIntel-6-207, 2 threads".
    pub class: String,
    /// Its processor's name and its threads.
    pub name: String,
}

impl Machine {
    /// This one.
    ///
    /// # Errors
    /// If the system does not describe its processor.
    pub fn this() -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
        let threads = thread::available_parallelism()?.get();
        Ok(Self::described(&cpuinfo, Backend::current(), threads))
    }

    fn described(cpuinfo: &str, arithmetic: Backend, threads: usize) -> Self {
        let field = |name: &str| {
            let value = cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name);
            value.map_or("unknown", |(_, value)| value.trim())
        };
        let arithmetic = format!("{arithmetic:?}").to_lowercase();
        let [vendor, family, model] = ["vendor_id", "cpu family", "model"].map(field);
        Self {
            class: format!("cpu {arithmetic} {vendor}-{family}-{model}, {threads} threads"),
            name: format!("{}, {threads} threads", field("model name")),
        }
    }
}

/// The class of instruction counts: they depend on the compiler, and on the processor that the counting tool presents.
pub fn counts_class() -> String {
    format!("instructions {} {}", std::env::consts::ARCH, env!("CUZK_RUSTC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_tells_kinds_of_processors_apart() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\n\
                       model name\t: Intel(R) Xeon(R) Processor\nprocessor\t: 1\nvendor_id\t: other\n";
        let machine = Machine::described(cpuinfo, Backend::Portable, 2);
        assert_eq!(machine.class, "cpu portable GenuineIntel-6-207, 2 threads");
        assert_eq!(machine.name, "Intel(R) Xeon(R) Processor, 2 threads");
        assert!(Machine::described("", Backend::Ifma, 1).class.contains("unknown-unknown-unknown"));
    }
}

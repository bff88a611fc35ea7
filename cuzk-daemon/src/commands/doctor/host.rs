//! What the system lets the daemon have: limits, control group, huge pages.

use std::fs;

use super::finding::Finding;
use crate::{
    commands::text,
    config::{Config, GpuPolicy},
    resources::{self, Plan, Resources},
};

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// `/proc/self/limits`.
    limits: String,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`.
    huge_pages: Option<String>,
    resources: Resources,
    /// CPUs of the machine that are online.
    machine_cpus: Option<usize>,
    /// Bytes that the machine has, and that programs could still have.
    machine_memory: (Option<u64>, Option<u64>),
}

/// Looks.
pub(super) fn look() -> Seen {
    let cpus = fs::read_to_string("/proc/cpuinfo").ok();
    Seen {
        limits: fs::read_to_string("/proc/self/limits").unwrap_or_default(),
        huge_pages: fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok(),
        resources: Resources::detect(),
        machine_cpus: cpus.map(|text| text.lines().filter(|line| line.starts_with("processor")).count()),
        machine_memory: resources::machine_memory(),
    }
}

/// Judges it for a configuration.
pub(super) fn judge(config: &Config, seen: &Seen) -> Vec<Finding> {
    let mut findings = vec![open_files(config, &seen.limits)];
    if config.gpus.policy != GpuPolicy::Never {
        findings.push(locked_memory(&seen.limits));
    }
    findings.extend(memory(config, seen));
    findings.push(cpus(seen));
    findings.push(huge_pages(seen.huge_pages.as_deref()));
    findings
}

const OF_THIS: &str = "(of whoever runs this command: the unit sets its own)";

fn open_files(config: &Config, limits: &str) -> Finding {
    // Connections, and what else is open: files of parameters, of the store, of the driver.
    let wanted = u64::from(config.limits.max_connections.get()) * config.daemon.listen.0.len() as u64 + 256;
    match limit(limits, "Max open files") {
        Some(files) if files < wanted => Finding::warn(
            "open files",
            format!("{} {OF_THIS}; limits.max_connections may need {wanted}", shown(files)),
            "raise it (LimitNOFILE in the unit, `ulimit -n` in a shell), or lower limits.max_connections",
        ),
        Some(files) => Finding::ok("open files", shown(files)),
        None => Finding::ok("open files", "the kernel tells no limit"),
    }
}

fn locked_memory(limits: &str) -> Finding {
    match limit(limits, "Max locked memory") {
        Some(bytes) if bytes < 1 << 30 => Finding::warn(
            "locked memory",
            format!("{} {OF_THIS}", text::bytes(bytes)),
            "page-locked memory for transfers may be refused: LimitMEMLOCK=infinity in the unit, `ulimit -l unlimited` in a shell",
        ),
        Some(u64::MAX) | None => Finding::ok("locked memory", "no limit"),
        Some(bytes) => Finding::ok("locked memory", text::bytes(bytes)),
    }
}

fn memory(config: &Config, seen: &Seen) -> Vec<Finding> {
    let (total, available) = seen.machine_memory;
    let (Some(usable), Some(total)) = (seen.resources.memory_bytes, total) else {
        return vec![Finding::warn("memory", "the kernel does not tell how much there is", "set memory.total_budget")];
    };
    let of = if usable < total { " (control group)" } else { "" };
    let mut findings = vec![Finding::ok("memory", format!("{} of {}{of}", text::bytes(usable), text::bytes(total)))];
    // Without a plan the daemon does not start, and the reason is told elsewhere.
    if let (Ok(plan), Some(available)) = (Plan::new(&seen.resources, config), available)
        && plan.memory.total() > available
    {
        let (budget, available) = (text::bytes(plan.memory.total()), text::bytes(available));
        findings.push(Finding::warn(
            "memory",
            format!("the daemon plans with {budget}, other programs leave {available}"),
            "stop them, or lower memory.total_budget; a daemon that runs already counts among them",
        ));
    }
    findings
}

fn cpus(seen: &Seen) -> Finding {
    let Resources { threads, cores, .. } = seen.resources;
    let has = format!("{threads} threads on {cores} cores");
    match seen.machine_cpus {
        Some(machine) if machine > threads => {
            Finding::ok("CPUs", format!("{has}, of {machine} CPUs (affinity mask or control group)"))
        }
        _ => Finding::ok("CPUs", has),
    }
}

fn huge_pages(enabled: Option<&str>) -> Finding {
    let chosen = enabled.and_then(|text| text.split('[').nth(1)?.split(']').next());
    match chosen {
        Some(chosen @ ("always" | "madvise")) => Finding::ok("huge pages", chosen),
        Some(other) => Finding::warn(
            "huge pages",
            format!("transparent huge pages: {other}"),
            "proofs on the CPU are slower: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        None => Finding::ok("huge pages", "the kernel does not tell"),
    }
}

/// The soft limit of this name; `u64::MAX` if there is none.
fn limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn shown(limit: u64) -> String {
    if limit == u64::MAX { "no limit".to_owned() } else { limit.to_string() }
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{
            Level::{Ok as Good, Warn},
            levels,
        },
        *,
    };

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                          Max locked memory         8388608              unlimited            bytes\n\
                          Max open files            1024                 524288               files\n";

    fn seen() -> Seen {
        Seen {
            limits: LIMITS.replace("8388608 ", "unlimited").replace("1024 ", "65536"),
            huge_pages: Some("always [madvise] never\n".into()),
            resources: Resources { threads: 8, cores: 8, memory_bytes: Some(64 << 30) },
            machine_cpus: Some(8),
            machine_memory: (Some(64 << 30), Some(62 << 30)),
        }
    }

    #[test]
    fn limits_are_read_by_name() {
        assert_eq!(limit(LIMITS, "Max open files"), Some(1024));
        assert_eq!(limit(LIMITS, "Max locked memory"), Some(8 << 20));
        assert_eq!(limit(&seen().limits, "Max locked memory"), Some(u64::MAX));
        assert_eq!(limit(LIMITS, "Max pending signals"), None);
    }

    #[test]
    fn a_good_host_has_nothing_to_mend() {
        assert_eq!(levels(&judge(&Config::default(), &seen())), [Good; 5]);
    }

    #[test]
    fn each_shortage_is_told() {
        let of = |seen: &Seen| levels(&judge(&Config::default(), seen));
        assert_eq!(of(&Seen { limits: LIMITS.to_owned(), ..seen() }), [Warn, Warn, Good, Good, Good]);
        assert_eq!(
            of(&Seen { huge_pages: Some("always madvise [never]".into()), ..seen() }),
            [Good, Good, Good, Good, Warn]
        );
        let taken = Seen { machine_memory: (Some(64 << 30), Some(20 << 30)), ..seen() };
        assert_eq!(of(&taken), [Good, Good, Good, Warn, Good, Good]);
        let unknown = Seen { machine_memory: (None, None), ..seen() };
        assert_eq!(of(&unknown), [Good, Good, Warn, Good, Good]);
        assert_eq!(of(&Seen { limits: String::new(), huge_pages: None, ..seen() }), [Good; 5]);
    }

    #[test]
    fn a_control_group_is_named() {
        let resources = Resources { threads: 4, cores: 4, memory_bytes: Some(16 << 30) };
        let machine_memory = (Some(64 << 30), Some(60 << 30));
        let findings = judge(&Config::default(), &Seen { resources, machine_memory, ..seen() });
        let text: Vec<_> = findings.iter().map(|finding| finding.seen.as_str()).collect();
        assert!(text.contains(&"16.0 GiB of 64.0 GiB (control group)"), "{text:?}");
        assert!(text.contains(&"4 threads on 4 cores, of 8 CPUs (affinity mask or control group)"), "{text:?}");
    }

    #[test]
    fn a_daemon_without_gpus_locks_nothing() {
        let mut config = Config::default();
        config.gpus.policy = GpuPolicy::Never;
        assert_eq!(levels(&judge(&config, &Seen { limits: LIMITS.to_owned(), ..seen() })), [Warn, Good, Good, Good]);
    }
}

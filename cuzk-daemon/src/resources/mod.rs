//! What this process may use of the machine: CPUs by affinity mask and quota, memory by control group and RAM.
//!
//! [`cgroup`] and [`cpus`] read the kernel's texts and are pure; [`Resources::detect`] finds the texts; and
//! [`Plan::new`] divides what there is as the configuration says.

mod cgroup;
mod cpus;
mod plan;

use std::{fs, path::Path};

pub use self::plan::{Plan, PlanError};

/// What this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Threads that can run at once, by affinity mask and quota. At least 1.
    pub threads: usize,
    /// The same, but with one thread a physical core. At least 1.
    pub cores: usize,
    /// Bytes of memory: the machine's, or the limit of the control group if that is less. `None` if the kernel
    /// tells neither.
    pub memory_bytes: Option<u64>,
}

impl Resources {
    /// Asks the kernel. Never fails: what cannot be read does not limit.
    pub fn detect() -> Self {
        Self::detect_below(Path::new("/"))
    }

    /// As [`Self::detect`], with another directory in the place of `/`.
    pub fn detect_below(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).ok();
        let proc_cgroup = read("proc/self/cgroup").unwrap_or_default();

        let quota = least(limits(root, &proc_cgroup, "cpu", |group, directory| match group {
            cgroup::Group::V2(_) => cgroup::cpus_v2(&fs::read_to_string(directory.join("cpu.max")).ok()?),
            cgroup::Group::V1(_) => cgroup::cpus_v1(
                &fs::read_to_string(directory.join("cpu.cfs_quota_us")).ok()?,
                &fs::read_to_string(directory.join("cpu.cfs_period_us")).ok()?,
            ),
        }));
        let memory_limit = limits(root, &proc_cgroup, "memory", |group, directory| {
            let file = match group {
                cgroup::Group::V2(_) => "memory.max",
                cgroup::Group::V1(_) => "memory.limit_in_bytes",
            };
            cgroup::memory_limit(&fs::read_to_string(directory.join(file)).ok()?)
        });
        let ram = read("proc/meminfo").and_then(|text| memory_of(&text, "MemTotal:"));

        let (threads, cores) = match read("proc/self/status").as_deref().and_then(cpus::allowed) {
            Some(allowed) => {
                let siblings = |cpu| {
                    let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
                    cpus::parse_list(&read(&file)?)
                };
                (allowed.len(), cpus::physical_cores(&allowed, siblings))
            }
            None => {
                let count = std::thread::available_parallelism().map_or(1, usize::from);
                (count, count)
            }
        };
        Self {
            threads: cpus::threads(threads, quota),
            cores: cpus::threads(cores, quota),
            memory_bytes: memory_limit.into_iter().chain(ram).min(),
        }
    }
}

/// Bytes of memory that the machine has, and those that programs could still have, if the kernel tells.
pub fn machine_memory() -> (Option<u64>, Option<u64>) {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    (memory_of(&text, "MemTotal:"), memory_of(&text, "MemAvailable:"))
}

/// The limits that a controller sets on this process's group and those above it.
fn limits<T>(
    root: &Path,
    proc_cgroup: &str,
    controller: &str,
    read: impl Fn(&cgroup::Group, &Path) -> Option<T>,
) -> Vec<T> {
    let mounts = root.join("sys/fs/cgroup");
    let Some(group) = cgroup::group(proc_cgroup, controller) else {
        return Vec::new();
    };
    let directories = match &group {
        // With v1 beside it, v2 is mounted one level down.
        cgroup::Group::V2(path) if mounts.join("unified").is_dir() => {
            cgroup::directories(&mounts.join("unified"), path)
        }
        cgroup::Group::V2(path) => cgroup::directories(&mounts, path),
        cgroup::Group::V1(path) => cgroup::directories(&mounts.join(controller), path),
    };
    directories.iter().filter_map(|directory| read(&group, directory)).collect()
}

fn least(quotas: Vec<f64>) -> Option<f64> {
    quotas.into_iter().min_by(f64::total_cmp)
}

/// A line of `/proc/meminfo`, in bytes.
fn memory_of(meminfo: &str, label: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(label))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine in a directory: files by path and text.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       65805508 kB\nMemFree: 1 kB\n");
    const STATUS: (&str, &str) = ("proc/self/status", "Cpus_allowed_list:\t0-7\n");

    #[test]
    fn a_bare_machine() {
        let root = machine(&[MEMINFO, STATUS, ("proc/self/cgroup", "0::/\n")]);
        let found = Resources::detect_below(root.path());
        assert_eq!(found, Resources { threads: 8, cores: 8, memory_bytes: Some(65_805_508 * 1024) });
    }

    #[test]
    fn v2_limits_of_any_ancestor_bind() {
        let root = machine(&[
            MEMINFO,
            STATUS,
            ("proc/self/cgroup", "0::/slice/unit\n"),
            ("sys/fs/cgroup/slice/unit/memory.max", "17179869184\n"),
            ("sys/fs/cgroup/slice/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/slice/unit/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/slice/cpu.max", "max 100000\n"),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,4\n"),
            ("sys/devices/system/cpu/cpu4/topology/thread_siblings_list", "0,4\n"),
        ]);
        let found = Resources::detect_below(root.path());
        assert_eq!(found, Resources { threads: 3, cores: 3, memory_bytes: Some(8 << 30) });
    }

    #[test]
    fn v1_in_a_container_is_found_at_the_mount() {
        let root = machine(&[
            MEMINFO,
            STATUS,
            ("proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        let found = Resources::detect_below(root.path());
        assert_eq!(found, Resources { threads: 2, cores: 2, memory_bytes: Some(4 << 30) });
    }

    #[test]
    fn hyperthreads_are_told_from_cores() {
        let root = machine(&[
            STATUS,
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n"),
        ]);
        let found = Resources::detect_below(root.path());
        assert_eq!(found, Resources { threads: 8, cores: 7, memory_bytes: None });
    }

    #[test]
    fn this_machine_has_something() {
        let found = Resources::detect();
        assert!(found.threads >= found.cores && found.cores >= 1);
        assert!(found.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }
}

//! Control groups, v1 and v2, as the kernel writes them in text. Pure.
//!
//! A process stands in one group of the v2 hierarchy and in one for each v1 controller; a limit on any group above
//! it binds too, so whoever asks reads all groups from its own up to the root and takes the least.

use std::path::{Path, PathBuf};

/// A controller's group of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// In the one hierarchy of v2.
    V2(PathBuf),
    /// In the v1 hierarchy of this controller.
    V1(PathBuf),
}

/// Finds the group for `controller` ("cpu", "memory") in the text of `/proc/self/cgroup`. Where both versions are
/// mounted, a controller belongs to v1 if a v1 line names it.
pub(super) fn group(proc_cgroup: &str, controller: &str) -> Option<Group> {
    let lines = || {
        proc_cgroup.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, names, path) = (parts.next()?, parts.next()?, parts.next()?);
            path.starts_with('/').then_some((id, names, path))
        })
    };
    let v1 = lines().find(|(_, names, _)| names.split(',').any(|name| name == controller));
    let v2 = || lines().find(|(id, names, _)| *id == "0" && names.is_empty());
    v1.map(|(_, _, path)| Group::V1(path.into())).or_else(|| v2().map(|(_, _, path)| Group::V2(path.into())))
}

/// The group and all above it, as directories below `mount`, innermost first. In a container the path may be the
/// host's, of which only the mount itself exists inside: the last entry is always `mount`.
pub(super) fn directories(mount: &Path, group: &Path) -> Vec<PathBuf> {
    let inner = group.strip_prefix("/").unwrap_or(group);
    // A path with `..` lies outside the mount: of a namespace's parents we see nothing.
    if inner.components().any(|part| part.as_os_str() == "..") {
        return vec![mount.to_owned()];
    }
    inner.ancestors().map(|part| mount.join(part)).collect()
}

/// Memory limit in bytes, from v2 `memory.max` or v1 `memory.limit_in_bytes`; `None` where there is none.
pub(super) fn memory_limit(text: &str) -> Option<u64> {
    // v1 writes "no limit" as the largest multiple of the page size below 2^63.
    let bytes: u64 = text.trim().parse().ok()?;
    (bytes < 1 << 62).then_some(bytes)
}

/// CPUs that v2 `cpu.max` ("QUOTA PERIOD" or "max PERIOD") grants.
pub(super) fn cpus_v2(text: &str) -> Option<f64> {
    let mut parts = text.split_whitespace();
    cpus(parts.next()?, parts.next()?)
}

/// CPUs that v1 `cpu.cfs_quota_us` (-1: no limit) and `cpu.cfs_period_us` grant.
pub(super) fn cpus_v1(quota: &str, period: &str) -> Option<f64> {
    cpus(quota.trim(), period.trim())
}

fn cpus(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "0::/system.slice/cuzk.service\n";
    const V1: &str = "12:memory:/docker/abc\n11:cpuset:/\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n";
    const HYBRID: &str = "5:memory:/user\n1:name=systemd:/init\n0::/init.scope\n";

    #[test]
    fn groups_of_both_versions() {
        assert_eq!(group(V2, "memory"), Some(Group::V2("/system.slice/cuzk.service".into())));
        assert_eq!(group(V1, "memory"), Some(Group::V1("/docker/abc".into())));
        assert_eq!(group(V1, "cpu"), Some(Group::V1("/docker/abc".into())));
        assert_eq!(group(V1, "io"), None);
        assert_eq!(group(HYBRID, "memory"), Some(Group::V1("/user".into())));
        assert_eq!(group(HYBRID, "cpu"), Some(Group::V2("/init.scope".into())));
        assert_eq!(group("", "cpu"), None);
        assert_eq!(group("garbage\n0:", "cpu"), None);
        // A colon in the path belongs to it.
        assert_eq!(group("0::/a:b\n", "cpu"), Some(Group::V2("/a:b".into())));
    }

    #[test]
    fn directories_climb_to_the_mount() {
        let up = |group: &str| directories(Path::new("/sys/fs/cgroup"), Path::new(group));
        assert_eq!(up("/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"].map(PathBuf::from));
        assert_eq!(up("/"), [PathBuf::from("/sys/fs/cgroup/")]);
        assert_eq!(up("/../other"), [PathBuf::from("/sys/fs/cgroup")]);
    }

    #[test]
    fn memory_limits() {
        assert_eq!(memory_limit("17179869184\n"), Some(17_179_869_184));
        assert_eq!(memory_limit("max\n"), None);
        assert_eq!(memory_limit("9223372036854771712\n"), None);
        assert_eq!(memory_limit(""), None);
    }

    #[test]
    fn cpu_quotas() {
        assert_eq!(cpus_v2("150000 100000\n"), Some(1.5));
        assert_eq!(cpus_v2("max 100000\n"), None);
        assert_eq!(cpus_v2("100000"), None);
        assert_eq!(cpus_v1("400000\n", "100000\n"), Some(4.0));
        assert_eq!(cpus_v1("-1\n", "100000\n"), None);
        assert_eq!(cpus_v1("100000", "0"), None);
    }
}

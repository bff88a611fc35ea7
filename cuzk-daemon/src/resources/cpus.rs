//! CPU sets as the kernel writes them in text, and how many threads they are good for. Pure.

use std::collections::BTreeSet;

/// Reads a list such as `0-3,8,10-11` (`Cpus_allowed_list`, `thread_siblings_list`).
pub(super) fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // More than any kernel is built for is no CPU list, and not worth the memory.
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The CPUs this process may run on, from the text of `/proc/self/status`.
pub(super) fn allowed(proc_status: &str) -> Option<BTreeSet<usize>> {
    let line = proc_status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    parse_list(line).filter(|cpus| !cpus.is_empty())
}

/// How many physical cores a set of CPUs has; `siblings` tells which CPUs share the core of one. Where it does not
/// know, each CPU counts as a core.
pub(super) fn physical_cores(cpus: &BTreeSet<usize>, siblings: impl Fn(usize) -> Option<BTreeSet<usize>>) -> usize {
    let cores: BTreeSet<_> =
        cpus.iter().map(|&cpu| siblings(cpu).and_then(|set| set.first().copied()).unwrap_or(cpu)).collect();
    cores.len()
}

/// Threads that can run at once on so many CPUs under a quota: the quota rounded up, since a thread more costs less
/// than a core left idle; at least 1.
pub(super) fn threads(cpus: usize, quota: Option<f64>) -> usize {
    let granted = quota.map_or(usize::MAX, |quota| quota.ceil() as usize);
    cpus.min(granted).max(1)
}

const MAX_CPUS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> BTreeSet<usize> {
        cpus.iter().copied().collect()
    }

    #[test]
    fn lists() {
        assert_eq!(parse_list("0-3,8\n"), Some(set(&[0, 1, 2, 3, 8])));
        assert_eq!(parse_list("5"), Some(set(&[5])));
        assert_eq!(parse_list(""), Some(set(&[])));
        for text in ["a", "3-1", "0-99999999", "1-", "-1"] {
            assert_eq!(parse_list(text), None, "{text}");
        }
    }

    #[test]
    fn the_affinity_mask_is_found_in_the_status() {
        let status = "Name:\tcuzk\nCpus_allowed:\tff\nCpus_allowed_list:\t2-3,6\nMems_allowed_list:\t0\n";
        assert_eq!(allowed(status), Some(set(&[2, 3, 6])));
        assert_eq!(allowed("Name:\tcuzk\n"), None);
        assert_eq!(allowed("Cpus_allowed_list:\t\n"), None);
    }

    #[test]
    fn hyperthreads_share_a_core() {
        let pairs = |cpu: usize| Some(set(&[cpu % 4, cpu % 4 + 4]));
        assert_eq!(physical_cores(&set(&[0, 1, 2, 3, 4, 5, 6, 7]), pairs), 4);
        assert_eq!(physical_cores(&set(&[4, 5]), pairs), 2);
        assert_eq!(physical_cores(&set(&[0, 4]), pairs), 1);
        assert_eq!(physical_cores(&set(&[0, 4]), |_| None), 2);
    }

    #[test]
    fn a_quota_bounds_the_threads() {
        assert_eq!(threads(16, None), 16);
        assert_eq!(threads(16, Some(1.5)), 2);
        assert_eq!(threads(2, Some(64.0)), 2);
        assert_eq!(threads(4, Some(0.2)), 1);
        assert_eq!(threads(0, None), 1);
    }
}

//! What devices did, and when they waited and for what: from the phases of partitions. Pure. Times are microseconds by the
//! daemon's clock.

use std::collections::BTreeMap;

use cuzk_proto::v1::{PartitionTimes, PhaseInterval};

use super::stats::LOCK_HOLD;

/// What one device did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceUse {
    pub(super) device: String,
    /// From the begin of the first kernel phase to the end of the last one.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The part of it in which kernels ran.
    pub(super) busy: u64,
    /// When none ran, in order.
    pub(super) waits: Vec<Wait>,
    /// The phases of each thread, in order.
    pub(super) lanes: BTreeMap<u32, Vec<PhaseInterval>>,
}

/// A time in which a device ran no kernels, between two in which it did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wait {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// What its threads were at for most of it; `None`: nobody had a partition for it.
    pub(super) meanwhile: Option<String>,
}

impl Wait {
    pub(super) fn length(&self) -> u64 {
        self.end - self.begin
    }
}

impl DeviceUse {
    /// The part of its time in which kernels ran; 0 if none did.
    pub(super) fn busy_share(&self) -> f64 {
        if self.end > self.begin { self.busy as f64 / (self.end - self.begin) as f64 } else { 0.0 }
    }

    /// The longest wait.
    pub(super) fn longest_wait(&self) -> Option<&Wait> {
        self.waits.iter().max_by_key(|wait| wait.length())
    }
}

/// By device, in the order of their names.
pub(super) fn devices(partitions: &[PartitionTimes]) -> Vec<DeviceUse> {
    let mut lanes: BTreeMap<&str, BTreeMap<u32, Vec<PhaseInterval>>> = BTreeMap::new();
    for partition in partitions {
        let lane = lanes.entry(&partition.device).or_default().entry(partition.lane).or_default();
        lane.extend(partition.phases.iter().filter(|phase| phase.end_unix_us >= phase.begin_unix_us).cloned());
    }
    lanes.into_iter().map(|(device, lanes)| device_use(device.to_owned(), lanes)).collect()
}

fn device_use(device: String, mut lanes: BTreeMap<u32, Vec<PhaseInterval>>) -> DeviceUse {
    lanes.values_mut().for_each(|phases| phases.sort_by_key(|phase| (phase.begin_unix_us, phase.end_unix_us)));
    let all = || lanes.values().flatten();
    let mut holds: Vec<_> = all().filter(|p| p.name == LOCK_HOLD).map(|p| (p.begin_unix_us, p.end_unix_us)).collect();
    holds.sort_unstable();
    let (mut waits, mut busy) = (Vec::new(), 0);
    let begin = holds.first().map_or(0, |hold| hold.0);
    let mut end = begin;
    for (from, to) in holds {
        if from > end {
            waits.push(Wait { begin: end, end: from, meanwhile: meanwhile(all(), end, from) });
        }
        busy += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    DeviceUse { device, begin, end, busy, waits, lanes }
}

/// The phase that took most of the time between two moments, over all threads; `None` if all of them together took less
/// than half of it.
fn meanwhile<'a>(phases: impl Iterator<Item = &'a PhaseInterval>, begin: u64, end: u64) -> Option<String> {
    let mut overlaps: BTreeMap<&str, u64> = BTreeMap::new();
    // Whoever waits for the lock is what a device waits with, not for.
    for phase in phases.filter(|phase| phase.name != LOCK_HOLD && phase.name != "lock_wait") {
        let overlap = phase.end_unix_us.min(end).saturating_sub(phase.begin_unix_us.max(begin));
        *overlaps.entry(&phase.name).or_default() += overlap;
    }
    let most = overlaps.iter().max_by_key(|(_, overlap)| **overlap)?;
    (overlaps.values().sum::<u64>() * 2 >= end - begin).then(|| (*most.0).to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A partition of device "d".
    pub(in super::super) fn partition(lane: u32, phases: &[(&str, u64, u64)]) -> PartitionTimes {
        let phase = |&(name, begin_unix_us, end_unix_us): &(&str, u64, u64)| PhaseInterval {
            name: name.to_owned(),
            begin_unix_us,
            end_unix_us,
        };
        PartitionTimes {
            device: "d".into(),
            lane,
            phases: phases.iter().map(phase).collect(),
            ..PartitionTimes::default()
        }
    }

    #[test]
    fn a_device_is_busy_in_its_kernel_phases_and_waits_between_them() {
        let partitions = [
            partition(1, &[("stage", 0, 10), (LOCK_HOLD, 10, 110), ("msm_h", 20, 100), ("msm_b_g2", 110, 190)]),
            partition(2, &[("stage", 0, 10), ("lock_wait", 10, 110), (LOCK_HOLD, 110, 200)]),
            partition(1, &[("stage", 190, 240), (LOCK_HOLD, 240, 300)]),
            partition(2, &[(LOCK_HOLD, 400, 500)]),
        ];
        let all = devices(&partitions);
        let [device] = &all[..] else { panic!("one device") };
        assert_eq!((device.begin, device.end, device.busy), (10, 500, 100 + 90 + 60 + 100));
        let waits: Vec<_> = device.waits.iter().map(|w| (w.begin, w.end, w.meanwhile.as_deref())).collect();
        assert_eq!(waits, [(200, 240, Some("stage")), (300, 400, None)]);
        assert_eq!(device.longest_wait().map(Wait::length), Some(100));
        assert!((device.busy_share() - 350.0 / 490.0).abs() < 1e-9);
        assert_eq!(device.lanes[&1].iter().map(|p| p.begin_unix_us).collect::<Vec<_>>(), [0, 10, 20, 110, 190, 240]);
    }

    #[test]
    fn what_overlaps_counts_once_and_what_is_empty_is_nothing() {
        let overlapping = [partition(1, &[(LOCK_HOLD, 0, 100)]), partition(2, &[(LOCK_HOLD, 50, 120)])];
        let device = &devices(&overlapping)[0];
        assert_eq!((device.busy, device.waits.len()), (120, 0));
        assert!(devices(&[]).is_empty());
        let idle = &devices(&[partition(1, &[("stage", 3, 4)])])[0];
        assert_eq!((idle.busy_share(), idle.longest_wait()), (0.0, None));
        // A clock that was set back.
        assert!(devices(&[partition(1, &[(LOCK_HOLD, 9, 4)])])[0].lanes[&1].is_empty());
    }

    #[test]
    fn devices_are_told_apart() {
        let other = PartitionTimes { device: "c".into(), ..partition(3, &[(LOCK_HOLD, 0, 1)]) };
        let all = devices(&[partition(1, &[(LOCK_HOLD, 0, 1)]), other]);
        assert_eq!(all.iter().map(|d| d.device.as_str()).collect::<Vec<_>>(), ["c", "d"]);
    }
}

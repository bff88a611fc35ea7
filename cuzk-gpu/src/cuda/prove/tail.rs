//! Who sums up b_g2 where both the device and the CPU can: decided by measured times. Pure.
//!
//! With it on the CPU, a device that has `workers` partitions at once begins one every max(hold, hold / workers + tail)
//! seconds: the lock is held one after the other, and each worker's next turn comes after its tail, in which the pool that
//! computes it serves the others' as well. With it on the device, one every time that the lock is held then.

use std::time::Duration;

/// Where the sum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// After the lock is released.
    Cpu,
    /// In the kernel phase.
    Device,
}

/// The times so far of a circuit on a device.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    workers: u32,
    chosen: u64,
    /// Holding the lock, and the pool's time for a tail, with the sum on the CPU.
    on_cpu: Option<[f64; 2]>,
    /// Holding the lock with the sum on the device.
    on_device: Option<f64>,
}

/// The place that looked slower is measured again after so many partitions: other load on the CPU comes and goes.
const LOOK_AGAIN: u64 = 64;
/// Weight of a new measurement.
const NEW: f64 = 0.25;

impl Tail {
    /// Without measurements.
    pub(super) fn new(workers: usize) -> Self {
        Self { workers: workers.max(1) as u32, chosen: 0, on_cpu: None, on_device: None }
    }

    /// The place for the next partition.
    pub(super) fn choose(&mut self) -> Place {
        self.chosen += 1;
        let (Some([hold, tail]), Some(on_device)) = (self.on_cpu, self.on_device) else {
            return if self.on_cpu.is_none() { Place::Cpu } else { Place::Device };
        };
        let on_cpu = hold.max(hold / f64::from(self.workers) + tail);
        let look_again = self.chosen.is_multiple_of(LOOK_AGAIN);
        if (on_cpu < on_device) != look_again { Place::Cpu } else { Place::Device }
    }

    /// Notes a partition that was done with the sum on the device.
    pub(super) fn note_device(&mut self, hold: Duration) {
        self.on_device = Some(mix(self.on_device, hold.as_secs_f64()));
    }

    /// Notes a partition with the sum on the CPU, where so many tails ran at once, this one included.
    pub(super) fn note_cpu(&mut self, hold: Duration, tail: Duration, at_once: usize) {
        let [old_hold, old_tail] = self.on_cpu.map_or([None; 2], |times| times.map(Some));
        let pool = tail.as_secs_f64() / at_once.max(1) as f64;
        self.on_cpu = Some([mix(old_hold, hold.as_secs_f64()), mix(old_tail, pool)]);
    }
}

fn mix(old: Option<f64>, new: f64) -> f64 {
    old.map_or(new, |old| old + NEW * (new - old))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The places of the next partitions where the times are these.
    fn places(hold: [u64; 2], tail: u64, count: usize) -> Vec<Place> {
        let mut chooser = Tail::new(2);
        let next = |_| {
            let place = chooser.choose();
            match place {
                Place::Cpu => chooser.note_cpu(ms(hold[0]), ms(2 * tail), 2),
                Place::Device => chooser.note_device(ms(hold[1])),
            }
            place
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn both_are_tried_and_the_faster_one_is_kept() {
        // On 16 cores, and on 96.
        let (few, many) = (places([35, 44], 40, 200), places([35, 44], 9, 200));
        for (places, faster) in [(few, Place::Device), (many, Place::Cpu)] {
            assert_eq!(places[..2], [Place::Cpu, Place::Device]);
            let others = places[2..].iter().filter(|place| **place != faster).count();
            assert_eq!(others, 200 / LOOK_AGAIN as usize, "but for a look now and then");
        }
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut chooser = Tail::new(2);
        chooser.note_device(ms(44));
        chooser.note_cpu(ms(35), ms(9), 1);
        assert_eq!(chooser.choose(), Place::Cpu);
        for _ in 0..20 {
            chooser.note_cpu(ms(35), ms(60), 1);
        }
        assert_eq!(chooser.choose(), Place::Device);
    }
}

//! Which devices may be given work, and where a partition goes that one of them failed. Pure: the time comes in.
//!
//! A device that fails is sick and left alone for a while, twice as long each time in a row; then it is revived, with a new
//! context, by whoever would next have used it. Meanwhile its partitions go to other devices, and to the host last.

use std::time::{Duration, Instant};

use crate::prover::Fault;

/// How often a partition is tried, and how long a sick device is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The most tries of one partition, the first included.
    pub attempts: u32,
    /// Whether the host may prove what no device does.
    pub host: bool,
    /// The first pause of a sick device.
    pub back_off: Duration,
    /// The longest.
    pub longest_back_off: Duration,
}

/// How a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It takes work.
    Healthy,
    /// It failed in this way, and is left alone until then.
    Sick {
        /// The failure.
        fault: Fault,
        /// When it may be revived.
        until: Instant,
    },
    /// Somebody is giving it a new context.
    Reviving {
        /// The failure before.
        fault: Fault,
    },
}

/// What to do next with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Prove it on this device.
    Device(usize),
    /// Revive this device, report how that went, and ask again.
    Revive(usize),
    /// Prove it on the host.
    Host,
    /// Nothing is left to try.
    GiveUp,
}

/// The tries of one partition.
#[derive(Clone, Debug, Default)]
pub struct Tries {
    devices: Vec<usize>,
    host: bool,
    /// A device was to be revived for it; that is tried once.
    revived: bool,
}

/// All devices of a process.
#[derive(Clone, Debug)]
pub struct Health {
    policy: Policy,
    devices: Vec<Device>,
}

#[derive(Clone, Debug)]
struct Device {
    state: State,
    failures_in_a_row: u32,
    faults: u64,
    wrong_proofs: u64,
}

impl Health {
    /// All healthy.
    pub fn new(devices: usize, policy: Policy) -> Self {
        let device = Device { state: State::Healthy, failures_in_a_row: 0, faults: 0, wrong_proofs: 0 };
        Self { policy, devices: vec![device; devices] }
    }

    /// Where a partition goes that a worker of device `preferred` has taken. Notes the try, or that the device is being
    /// revived.
    pub fn next(&mut self, preferred: usize, tries: &mut Tries, now: Instant) -> Step {
        if tries.count() >= self.policy.attempts {
            return Step::GiveUp;
        }
        if let Some(device) = self.devices.get_mut(preferred)
            && let State::Sick { fault, until } = device.state
            && until <= now
            && !tries.revived
            && !tries.devices.contains(&preferred)
        {
            tries.revived = true;
            device.state = State::Reviving { fault };
            return Step::Revive(preferred);
        }
        let others = (0..self.devices.len()).filter(|&i| i != preferred);
        let mut untried = std::iter::once(preferred).chain(others).filter(|i| !tries.devices.contains(i));
        if let Some(i) = untried.find(|&i| self.devices.get(i).is_some_and(|d| d.state == State::Healthy)) {
            tries.devices.push(i);
            return Step::Device(i);
        }
        if self.policy.host && !tries.host {
            tries.host = true;
            return Step::Host;
        }
        Step::GiveUp
    }

    /// A device failed a partition. Tells for how long it will be left alone, if it is sick now.
    pub fn handle_failed(&mut self, device: usize, fault: Fault, now: Instant) -> Option<Duration> {
        let device = &mut self.devices[device];
        device.faults += 1;
        device.wrong_proofs += u64::from(fault == Fault::WrongProof);
        if !fault.is_sickness() {
            return None;
        }
        device.failures_in_a_row += 1;
        let doublings = (device.failures_in_a_row - 1).min(31);
        let pause = self.policy.back_off.saturating_mul(1 << doublings).min(self.policy.longest_back_off);
        device.state = State::Sick { fault, until: now + pause };
        Some(pause)
    }

    /// A device proved a partition, and the proof is right.
    pub fn handle_proved(&mut self, device: usize) {
        self.devices[device].failures_in_a_row = 0;
    }

    /// A device has a new context.
    pub fn handle_revived(&mut self, device: usize) {
        self.devices[device].state = State::Healthy;
    }

    /// How a device is.
    pub fn state(&self, device: usize) -> State {
        self.devices[device].state
    }

    /// Failures of a device since the start, and wrong proofs among them.
    pub fn failures(&self, device: usize) -> (u64, u64) {
        (self.devices[device].faults, self.devices[device].wrong_proofs)
    }
}

impl Tries {
    /// How many there were.
    pub fn count(&self) -> u32 {
        self.devices.len() as u32 + u32::from(self.host)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self { attempts: 3, host: true, back_off: Duration::from_secs(10), longest_back_off: Duration::from_secs(600) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn health(devices: usize) -> (Health, Instant) {
        let policy = Policy { attempts: 3, host: true, back_off: 10 * SECOND, longest_back_off: 35 * SECOND };
        (Health::new(devices, policy), Instant::now())
    }

    #[test]
    fn the_preferred_device_comes_first_then_others_then_the_host() {
        let (mut health, now) = health(2);
        let mut tries = Tries::default();
        assert_eq!(health.next(1, &mut tries, now), Step::Device(1));
        health.handle_failed(1, Fault::Launch, now);
        assert_eq!(health.next(1, &mut tries, now), Step::Device(0));
        health.handle_failed(0, Fault::Gone, now);
        assert_eq!(health.next(1, &mut tries, now), Step::Host);
        assert_eq!(health.next(1, &mut tries, now), Step::GiveUp);
        // The next partition does not even try them.
        assert_eq!(health.next(0, &mut Tries::default(), now), Step::Host);
    }

    #[test]
    fn attempts_are_counted_over_all_places() {
        let (mut health, now) = health(5);
        let mut tries = Tries::default();
        for expected in [Step::Device(4), Step::Device(0), Step::Device(1), Step::GiveUp] {
            let step = health.next(4, &mut tries, now);
            assert_eq!(step, expected);
            if let Step::Device(i) = step {
                health.handle_failed(i, Fault::Unfit, now);
            }
        }
        assert_eq!(health.state(4), State::Healthy, "one partition that does not fit is no sickness");
    }

    #[test]
    fn sick_devices_are_revived_after_longer_and_longer_pauses() {
        let (mut health, mut now) = health(1);
        for seconds in [10, 20, 35, 35] {
            let pause = health.handle_failed(0, Fault::Context, now);
            assert_eq!(pause, Some(seconds * SECOND));
            now += seconds * SECOND - Duration::from_millis(1);
            assert_eq!(health.next(0, &mut Tries::default(), now), Step::Host, "too early");
            now += Duration::from_millis(1);
            let mut tries = Tries::default();
            assert_eq!(health.next(0, &mut tries, now), Step::Revive(0));
            assert_eq!(health.next(0, &mut Tries::default(), now), Step::Host, "others do not wait for it");
            health.handle_revived(0);
            assert_eq!(health.next(0, &mut tries, now), Step::Device(0));
        }
        health.handle_proved(0);
        assert_eq!(health.handle_failed(0, Fault::Context, now), Some(10 * SECOND), "a success starts anew");
        assert_eq!(health.failures(0), (5, 0));
    }

    #[test]
    fn a_device_that_failed_this_partition_is_not_revived_for_it() {
        let (mut health, now) = health(1);
        let mut tries = Tries::default();
        assert_eq!(health.next(0, &mut tries, now), Step::Device(0));
        health.handle_failed(0, Fault::WrongProof, now);
        assert_eq!(health.next(0, &mut tries, now + 100 * SECOND), Step::Host);
        assert_eq!(health.failures(0), (1, 1));
    }

    #[test]
    fn without_devices_the_host_proves() {
        let (mut health, now) = health(0);
        assert_eq!(health.next(0, &mut Tries::default(), now), Step::Host);
        let mut never = Health::new(0, Policy { host: false, ..Policy::default() });
        assert_eq!(never.next(0, &mut Tries::default(), now), Step::GiveUp);
    }
}

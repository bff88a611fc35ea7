//! All devices of a process and the host behind them: a partition that one fails goes to the next.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::{
    health::{Health, Policy, State, Step, Tries},
    prover::ProveError,
};

/// The health of the devices, shared by all workers.
#[derive(Debug)]
pub struct Fleet {
    health: Mutex<Health>,
}

/// What a fleet does with one partition. Each may be called several times, for different places.
pub trait Attempts {
    /// A proof that was verified.
    type Proof;

    /// Proves and verifies on a device.
    fn on_device(&self, device: usize) -> Result<Self::Proof, ProveError>;

    /// Proves and verifies on the host.
    fn on_host(&self) -> Result<Self::Proof, ProveError>;

    /// Gives a device a new context, and all that it needs to prove.
    fn revive(&self, device: usize) -> Result<(), ProveError>;
}

impl Fleet {
    /// So many devices, all healthy.
    pub fn new(devices: usize, policy: Policy) -> Self {
        Self { health: Mutex::new(Health::new(devices, policy)) }
    }

    /// Proves one partition, which a worker of device `preferred` has taken, wherever that succeeds.
    ///
    /// # Errors
    /// [`ProveError::Input`] at once, since no place can prove it; else the last error when all tries are used up.
    pub fn prove<A: Attempts>(&self, preferred: usize, attempts: &A) -> Result<A::Proof, ProveError> {
        let mut tries = Tries::default();
        let mut last = None;
        loop {
            let step = self.with(|health| health.next(preferred, &mut tries, Instant::now()));
            let (device, result) = match step {
                Step::Revive(device) => {
                    tracing::info!(device, "giving the device a new context");
                    match attempts.revive(device) {
                        Ok(()) => self.with(|health| health.handle_revived(device)),
                        Err(error) => self.failed(device, &error),
                    }
                    continue;
                }
                Step::Device(device) => (Some(device), attempts.on_device(device)),
                Step::Host => (None, attempts.on_host()),
                Step::GiveUp => {
                    let nothing = || ProveError::Input("no device is healthy, and the host must not prove".to_owned());
                    return Err(last.unwrap_or_else(nothing));
                }
            };
            match (device, result) {
                (Some(device), Ok(proof)) => {
                    self.with(|health| health.handle_proved(device));
                    return Ok(proof);
                }
                (None, Ok(proof)) => return Ok(proof),
                (_, Err(error @ ProveError::Input(_))) => return Err(error),
                (device, Err(error)) => {
                    if let Some(device) = device {
                        self.failed(device, &error);
                    }
                    last = Some(error);
                }
            }
        }
    }

    /// How every device is.
    pub fn states(&self, devices: usize) -> Vec<State> {
        self.with(|health| (0..devices).map(|device| health.state(device)).collect())
    }

    /// Failures of a device since the start, and wrong proofs among them.
    pub fn failures(&self, device: usize) -> (u64, u64) {
        self.with(|health| health.failures(device))
    }

    fn failed(&self, device: usize, error: &ProveError) {
        let Some(fault) = error.fault() else { return };
        match self.with(|health| health.handle_failed(device, fault, Instant::now())) {
            Some(pause) => tracing::error!(device, fault = fault.name(), ?pause, "the device is unhealthy: {error}"),
            None => tracing::warn!(device, fault = fault.name(), "the partition goes elsewhere: {error}"),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Health) -> T) -> T {
        f(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, time::Duration};

    use super::*;
    use crate::prover::{DeviceError, Fault};

    /// Fails as a script says, device by device; notes where it was called.
    struct Script {
        faults: Vec<RefCell<Vec<Fault>>>,
        revival_fails: bool,
        log: RefCell<Vec<String>>,
    }

    impl Script {
        fn new(faults: &[&[Fault]]) -> Self {
            let faults = faults.iter().map(|f| RefCell::new(f.iter().rev().copied().collect())).collect();
            Self { faults, revival_fails: false, log: RefCell::default() }
        }

        fn note(&self, what: String) {
            self.log.borrow_mut().push(what);
        }

        fn logged(&self) -> Vec<String> {
            self.log.take()
        }
    }

    fn error(fault: Fault) -> ProveError {
        DeviceError { device: "fake".into(), fault, what: "a script".into() }.into()
    }

    impl Attempts for Script {
        type Proof = String;

        fn on_device(&self, device: usize) -> Result<String, ProveError> {
            self.note(format!("device {device}"));
            match self.faults[device].borrow_mut().pop() {
                Some(fault) => Err(error(fault)),
                None => Ok(format!("device {device}")),
            }
        }

        fn on_host(&self) -> Result<String, ProveError> {
            self.note("host".into());
            Ok("host".into())
        }

        fn revive(&self, device: usize) -> Result<(), ProveError> {
            self.note(format!("revive {device}"));
            if self.revival_fails { Err(error(Fault::Gone)) } else { Ok(()) }
        }
    }

    fn fleet(devices: usize, back_off: Duration) -> Fleet {
        Fleet::new(devices, Policy { back_off, ..Policy::default() })
    }

    #[test]
    fn every_fault_sends_the_partition_elsewhere() {
        use Fault::*;
        for fault in [Unfit, Memory, Launch, Context, Gone, Watchdog, WrongProof] {
            let script = Script::new(&[&[fault], &[]]);
            let fleet = fleet(2, Duration::from_secs(3600));
            assert_eq!(fleet.prove(0, &script).ok().as_deref(), Some("device 1"), "{fault:?}");
            let sick = matches!(fleet.states(2)[0], State::Sick { .. });
            assert_eq!(sick, fault.is_sickness(), "{fault:?}");
            assert_eq!(fleet.failures(0), (1, u64::from(fault == WrongProof)));
        }
    }

    #[test]
    fn a_device_comes_back() {
        let script = Script::new(&[&[Fault::Context]]);
        let fleet = fleet(1, Duration::ZERO);
        assert_eq!(fleet.prove(0, &script).ok().as_deref(), Some("host"));
        assert_eq!(fleet.prove(0, &script).ok().as_deref(), Some("device 0"));
        assert_eq!(script.logged(), ["device 0", "host", "revive 0", "device 0"]);
    }

    #[test]
    fn a_revival_that_fails_is_not_repeated_at_once() {
        let script = Script { revival_fails: true, ..Script::new(&[&[Fault::Gone]]) };
        let fleet = fleet(1, Duration::from_millis(1));
        assert_eq!(fleet.prove(0, &script).ok().as_deref(), Some("host"));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(fleet.prove(0, &script).ok().as_deref(), Some("host"));
        let log = script.logged();
        assert_eq!(log[..2], ["device 0", "host"]);
        assert_eq!(log.last().map(String::as_str), Some("host"));
        assert!(log.iter().filter(|line| *line == "revive 0").count() >= 1, "{log:?}");
    }

    #[test]
    fn wrong_input_is_tried_once() {
        struct Wrong;
        impl Attempts for Wrong {
            type Proof = ();
            fn on_device(&self, _: usize) -> Result<(), ProveError> {
                Err(ProveError::Input("no".into()))
            }
            fn on_host(&self) -> Result<(), ProveError> {
                panic!("it was the device's turn")
            }
            fn revive(&self, _: usize) -> Result<(), ProveError> {
                panic!("nothing is sick")
            }
        }
        assert!(matches!(fleet(2, Duration::ZERO).prove(1, &Wrong), Err(ProveError::Input(_))));
    }
}

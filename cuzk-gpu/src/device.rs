//! A device: a backend behind exactly one lock, held around the kernel phase only.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::{
    prover::{Backend, Blinding, DeviceError, Fault, Partition, ProveError, ProvingKey, epilogue},
    timing::{Phase, Timings},
    turns::Turns,
};
use bellperson::groth16::Proof;
use blstrs::Bls12;

/// Proves partitions on one backend. Any number of threads may call [`Device::prove`]; their kernel phases take turns,
/// their other phases run side by side.
#[derive(Debug)]
pub struct Device<B> {
    backend: B,
    lock: Turns,
    injected: Mutex<VecDeque<Injected>>,
}

/// A failure that is to happen, so that what follows from it can be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// Where: in [`Phase::Stage`], [`Phase::LockHold`], [`Phase::MsmBG2`] or [`Phase::Epilogue`].
    pub phase: Phase,
    /// What. [`Fault::WrongProof`] in the epilogue gives a wrong proof, all else is an error.
    pub fault: Fault,
}

impl<B: Backend> Device<B> {
    /// A device that runs on `backend`.
    pub fn new(backend: B) -> Self {
        Self { backend, lock: Turns::default(), injected: Mutex::default() }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Lets a later partition fail: the next one that reaches the place, after those that were injected before.
    pub fn inject(&self, injected: Injected) {
        self.injected.lock().unwrap_or_else(PoisonError::into_inner).push_back(injected);
    }

    /// Proves one partition. The proof is not verified here.
    ///
    /// # Errors
    /// [`ProveError::Input`] if the parameters are of another circuit, else what the backend says.
    pub fn prove(
        &self,
        key: &B::Key,
        partition: &Partition,
        blinding: Blinding,
    ) -> Result<(Proof<Bls12>, Timings), ProveError> {
        partition.is_whole()?;
        key.fits(&partition.r1cs).map_err(ProveError::Input)?;
        let mut timings = Timings::default();
        self.fail_if_injected(Phase::Stage)?;
        partition.watcher.enter(Phase::Stage);
        let staged = timings.measure(Phase::Stage, || self.backend.stage(key, partition))?;

        partition.watcher.enter(Phase::LockWait);
        let waiting = Instant::now();
        let turn = self.lock.take(partition.urgent);
        let locked = Instant::now();
        timings.push(Phase::LockWait, waiting, locked);
        partition.watcher.enter(Phase::LockHold);
        let kernels = match self.fail_if_injected(Phase::LockHold) {
            Ok(()) => self.backend.kernels(key, staged, &mut timings),
            Err(error) => Err(error),
        };
        // The end is taken before the release, so that the intervals of two holders never overlap.
        timings.push(Phase::LockHold, locked, Instant::now());
        drop(turn);

        let rest = kernels?;
        self.fail_if_injected(Phase::MsmBG2)?;
        partition.watcher.enter(Phase::MsmBG2);
        let (sums, b_g2) = timings.measure(Phase::MsmBG2, || self.backend.finish(key, rest))?;
        partition.watcher.enter(Phase::Epilogue);
        let mut proof = timings.measure(Phase::Epilogue, || epilogue(key.vk(), &sums, b_g2, blinding))?;
        match self.fail_if_injected(Phase::Epilogue) {
            Err(error) if error.fault() == Some(Fault::WrongProof) => proof.a = -proof.a,
            other => other?,
        }
        Ok((proof, timings))
    }

    /// The error that was injected for this place, if it is its turn.
    fn fail_if_injected(&self, phase: Phase) -> Result<(), ProveError> {
        let mut injected = self.injected.lock().unwrap_or_else(PoisonError::into_inner);
        match injected.front().copied() {
            Some(Injected { phase: place, fault }) if place == phase => {
                injected.pop_front();
                let (device, phase) = (self.backend.name().to_owned(), phase.name());
                let what = format!("{device}: injected into {phase}");
                Err(DeviceError { device, fault, what }.into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc, Barrier,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    use blstrs::{G1Projective, G2Projective};
    use group::Group;

    use super::*;
    use crate::{
        arith::Backend as Arithmetic,
        cpu::Cpu,
        prover::{KernelSums, Watcher},
        srs::Srs,
        timing::{Interval, LockUse},
        toy::{Toy, trapdoor},
    };

    /// A backend whose phases wait for each other, so that what overlaps is decided by the lock and not by luck.
    struct Choreography {
        /// Both workers meet here: one in its CPU tail, the other in its kernels.
        tail_meets_kernels: Barrier,
        kernels_entered: AtomicUsize,
    }

    impl Backend for Choreography {
        type Key = Srs;
        type Staged = ();
        type Rest = usize;

        fn name(&self) -> &str {
            "choreography"
        }

        fn stage(&self, _: &Srs, _: &Partition) -> Result<(), ProveError> {
            Ok(())
        }

        fn kernels(&self, _: &Srs, (): (), _: &mut Timings) -> Result<usize, ProveError> {
            let turn = self.kernels_entered.fetch_add(1, Ordering::SeqCst);
            if turn == 1 {
                // Would never return if the first tail were under the lock.
                self.tail_meets_kernels.wait();
            }
            Ok(turn)
        }

        fn finish(&self, _: &Srs, turn: usize) -> Result<(KernelSums, G2Projective), ProveError> {
            if turn == 0 {
                self.tail_meets_kernels.wait();
            }
            Ok(any_sums())
        }
    }

    fn any_sums() -> (KernelSums, G2Projective) {
        let g = G1Projective::generator();
        (KernelSums { h: g, l: g, a: g, b_g1: g }, G2Projective::generator())
    }

    fn toy() -> Toy {
        Toy { seed: 4, constraints: 5, percent_inputs: 0, b_constant: false, blank: false }
    }

    fn find(timings: &Timings, phase: Phase) -> Interval {
        *timings.intervals().iter().find(|i| i.phase == phase).unwrap()
    }

    #[test]
    fn kernel_phases_take_turns_and_tails_overlap_them() {
        let srs = Arc::new(Toy::srs(&toy().reference_parameters(&trapdoor()), Arithmetic::current()));
        let device = Arc::new(Device::new(Choreography {
            tail_meets_kernels: Barrier::new(2),
            kernels_entered: AtomicUsize::new(0),
        }));
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (srs, device) = (srs.clone(), device.clone());
                thread::spawn(move || {
                    let partition = toy().partition();
                    let blinding = Blinding::random(rand::thread_rng());
                    device.prove(&srs, &partition, blinding).unwrap().1
                })
            })
            .collect();
        let mut timings: Vec<_> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        timings.sort_by_key(|t| find(t, Phase::LockHold).begin);
        let [first, second] = &timings[..] else { panic!("two workers ran") };
        assert!(find(first, Phase::MsmBG2).overlaps(&find(second, Phase::LockHold)));
        let lock_use = LockUse::of(&timings);
        assert_eq!((lock_use.collision, lock_use.hidden_tails), (None, 1));
    }

    #[test]
    fn the_watcher_is_told_of_each_phase_in_order() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let phases = told.clone();
        let watcher = Watcher::new(move |phase| phases.lock().unwrap().push(phase));
        let partition = Partition { watcher, ..toy().partition() };
        let srs = Toy::srs(&toy().reference_parameters(&trapdoor()), Arithmetic::current());
        let device = Device::new(Cpu::new(Arithmetic::current()));
        device.prove(&srs, &partition, Blinding::random(rand::thread_rng())).unwrap();
        let order = [Phase::Stage, Phase::LockWait, Phase::LockHold, Phase::MsmBG2, Phase::Epilogue];
        assert_eq!(*told.lock().unwrap(), order);
    }

    #[test]
    fn injected_failures_happen_once_where_they_were_injected() {
        let parameters = toy().reference_parameters(&trapdoor());
        let srs = Toy::srs(&parameters, Arithmetic::current());
        let (device, partition) = (Device::new(Cpu::new(Arithmetic::current())), toy().partition());
        let blinding = Blinding::random(rand::thread_rng());
        let right = device.prove(&srs, &partition, blinding).unwrap().0;
        let phases = [Phase::Stage, Phase::LockHold, Phase::MsmBG2, Phase::Epilogue];
        for (fault, phase) in Fault::ALL.into_iter().flat_map(|fault| phases.map(|phase| (fault, phase))) {
            device.inject(Injected { phase, fault });
            let result = device.prove(&srs, &partition, blinding);
            match (fault, phase) {
                (Fault::WrongProof, Phase::Epilogue) => assert_ne!(result.unwrap().0, right),
                _ => assert_eq!(result.unwrap_err().fault(), Some(fault), "{phase:?}"),
            }
            assert_eq!(device.prove(&srs, &partition, blinding).unwrap().0, right, "after {fault:?} in {phase:?}");
        }
    }

    #[test]
    fn a_panic_in_the_kernels_leaves_the_device_usable() {
        struct PanicsOnce(AtomicUsize);
        impl Backend for PanicsOnce {
            type Key = Srs;
            type Staged = ();
            type Rest = ();
            fn name(&self) -> &str {
                "panics once"
            }
            fn stage(&self, _: &Srs, _: &Partition) -> Result<(), ProveError> {
                Ok(())
            }
            fn kernels(&self, _: &Srs, (): (), _: &mut Timings) -> Result<(), ProveError> {
                assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "the first kernel panics");
                Ok(())
            }
            fn finish(&self, _: &Srs, (): ()) -> Result<(KernelSums, G2Projective), ProveError> {
                Ok(any_sums())
            }
        }
        let srs = Arc::new(Toy::srs(&toy().reference_parameters(&trapdoor()), Arithmetic::current()));
        let device = Arc::new(Device::new(PanicsOnce(AtomicUsize::new(0))));
        let prove = || {
            let (srs, device) = (srs.clone(), device.clone());
            thread::spawn(move || {
                let partition = toy().partition();
                device.prove(&srs, &partition, Blinding::random(rand::thread_rng()))
            })
            .join()
        };
        assert!(prove().is_err());
        assert!(prove().unwrap().is_ok());
    }
}

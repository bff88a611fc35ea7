//! The devices of a simulated engine: who holds their locks, what runs behind.

use std::{collections::VecDeque, time::Duration};

use super::{Cpu, Timed, Violation, World};
use crate::{
    core::{ProofFailure, ProofOrder, SynthesisFailure, ledger::Run},
    proving::PhaseTimings,
};

/// A partition in a prover.
#[derive(Clone, Debug)]
pub(super) struct Proving {
    pub(super) order: ProofOrder,
    pub(super) device: usize,
    pub(super) kernels_end: bool,
    pub(super) beside_end: bool,
    /// Kernel phases of others on the device since it was ready for its own.
    pub(super) waited_for: usize,
}

/// A simulated GPU: one lock, and who waits for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gpu {
    pub(super) holder: Option<Run>,
    pub(super) waiting: VecDeque<Run>,
}

impl World {
    pub(super) fn cpu_ended(&mut self, task: Cpu) -> Result<(), Violation> {
        match task {
            Cpu::Synthesis(run) => {
                self.synthesizing -= 1;
                let failed = self.happens(self.scenario.faults.synthesis);
                let result = if failed { Err(SynthesisFailure::Panic("fault".into())) } else { Ok(()) };
                self.core.handle_synthesized(run, result, Duration::ZERO, self.instant());
            }
            Cpu::Stage(run) => {
                if let Some(proving) = self.proving.get(&run) {
                    let device = proving.device;
                    self.gpus[device].waiting.push_back(run);
                    self.next_holder(device)?;
                }
            }
            Cpu::Beside(run) => {
                if let Some(proving) = self.proving.get_mut(&run) {
                    proving.beside_end = true;
                    self.release_if_done(run)?;
                }
            }
            Cpu::Tail(run) => self.proved(run),
        }
        Ok(())
    }

    /// Gives the lock of a device to whoever is next: urgent ones first.
    fn next_holder(&mut self, device: usize) -> Result<(), Violation> {
        let gpu = &mut self.gpus[device];
        if gpu.holder.is_some() {
            return Ok(());
        }
        let urgent = |run: &&Run| self.proving.get(run).is_some_and(|p| p.order.urgent);
        let Some(next) = gpu.waiting.iter().find(urgent).or_else(|| gpu.waiting.front()).copied() else {
            return Ok(());
        };
        gpu.waiting.retain(|run| *run != next);
        gpu.holder = Some(next);
        let waiting = gpu.waiting.clone();
        let Some(proving) = self.proving.get(&next).cloned() else { return Ok(()) };
        for run in waiting.iter().filter(|_| !proving.order.urgent) {
            if let Some(passed) = self.proving.get_mut(run) {
                passed.waited_for += 1;
            }
        }
        if proving.order.urgent {
            // The one that ran when it came is counted from its side, the others were counted while it waited.
            self.report.critical_waits = self.report.critical_waits.max(proving.waited_for);
            if proving.waited_for > 0 && self.scenario.machine.express {
                let rule = format!("{next:?} is CRITICAL, and {} others began before it", proving.waited_for);
                return Err(self.violation(rule));
            }
        }
        let kernels = self.costs(proving.order.circuit).kernels;
        if !self.happens(self.scenario.faults.hang) {
            self.after(kernels, Timed::KernelsEnd(next));
        }
        Ok(())
    }

    /// The lock is free once the kernels have run and what goes on beside them is done.
    pub(super) fn release_if_done(&mut self, run: Run) -> Result<(), Violation> {
        let Some(proving) = self.proving.get(&run) else { return Ok(()) };
        let device = proving.device;
        if !(proving.kernels_end && proving.beside_end && self.gpus[device].holder == Some(run)) {
            return Ok(());
        }
        self.gpus[device].holder = None;
        let tail = self.costs(proving.order.circuit).tail;
        self.cpu.start(Cpu::Tail(run), tail);
        self.next_holder(device)
    }

    fn proved(&mut self, run: Run) {
        let Some(proving) = self.proving.remove(&run) else { return };
        let faults = self.scenario.faults;
        let result = if self.happens(faults.device) {
            Err(ProofFailure::Device("fault".into()))
        } else if self.happens(faults.sick) {
            Err(ProofFailure::Sick("fault".into()))
        } else if self.happens(faults.bad_proof) {
            Err(ProofFailure::BadProof)
        } else {
            self.report.partitions += 1;
            Ok([0; 192])
        };
        let now = self.instant();
        if matches!(result, Ok(_) | Err(ProofFailure::BadProof)) {
            self.core.handle_made(proving.order, proving.device, now);
        }
        let whole = self.core.handle_proved(proving.order, proving.device, result, &PhaseTimings::default(), now);
        if let Some(whole) = whole {
            self.core.handle_whole_verified(run.job, whole, Ok(()), now);
        }
    }

    /// Everything on a device ends without a proof.
    pub(super) fn clear(&mut self, device: usize) {
        let gone: Vec<Proving> = self.proving.values().filter(|p| p.device == device).cloned().collect();
        self.gpus[device] = Gpu::default();
        for Proving { order, .. } in gone {
            self.proving.remove(&order.run);
            for task in [Cpu::Stage(order.run), Cpu::Beside(order.run), Cpu::Tail(order.run)] {
                self.cpu.stop(task);
            }
            let lost = Err(ProofFailure::Device("the context is gone".into()));
            self.core.handle_proved(order, device, lost, &PhaseTimings::default(), self.instant());
        }
    }
}

impl Gpu {
    pub(super) fn is_idle(&self) -> bool {
        self.holder.is_none() && self.waiting.is_empty()
    }
}

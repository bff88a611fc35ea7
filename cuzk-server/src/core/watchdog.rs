//! How long things may take: a limit for each stage of a partition, scaled to its circuit, and what happens past it.

use std::time::{Duration, Instant};

use cuzk_synth::circuit::{CircuitId, SectorSize};

use super::{
    Core, Effect,
    job::JobKey,
    ledger::{Place, Run, Slot},
};

/// No stage is given up earlier, however small its circuit: a busy machine is no stalled one.
const LEAST: Duration = Duration::from_secs(120);

/// How long one stage of a partition may take, from the limit for a circuit of 32 GiB sectors. Others get theirs in
/// proportion to their constraints, in millions of which they are counted here.
pub fn stage_limit(circuit: CircuitId, of_32_gib: Duration) -> Duration {
    let millions: u32 = match circuit.size {
        SectorSize::Kib2 => 3,
        SectorSize::Mib8 => 6,
        SectorSize::Mib512 => 20,
        SectorSize::Gib32 | SectorSize::Gib64 => 131,
    };
    (of_32_gib * millions / 131).max(LEAST.min(of_32_gib))
}

impl Core {
    /// When a partition will have been in its place for too long. Any time in the hand-over is no stall. On a device it
    /// may have to wait for all that was there before it.
    fn stalls_at(&self, slot: &Slot) -> Option<Instant> {
        let limit = |circuit| stage_limit(circuit, self.limits.stage_limit);
        let allowed = match slot.place {
            Place::Handover => return None,
            Place::Synthesis | Place::Verification(_) => limit(slot.circuit),
            Place::Device(_) => {
                let beside = self.ledger.iter().filter(|(_, other)| other.place == slot.place);
                beside.map(|(_, other)| limit(other.circuit)).sum()
            }
        };
        slot.since.checked_add(allowed).filter(|_| !slot.stalled)
    }

    pub(super) fn next_stall(&self) -> Option<Instant> {
        self.ledger.iter().filter_map(|(_, slot)| self.stalls_at(slot)).min()
    }

    /// A thread that has not come back for too long is not waited for: its attempt has failed, its memory stays charged,
    /// and its device, if it is one, gets no more work.
    pub(super) fn give_up_stalled(&mut self, now: Instant) {
        let due = |(run, slot): (Run, &Slot)| Some((run, slot.place, slot.since, self.stalls_at(slot)?));
        let stalled: Vec<_> = self.ledger.iter().filter_map(due).filter(|(.., at)| *at <= now).collect();
        for (run, place, since, _) in stalled {
            let age = now.saturating_duration_since(since);
            if let Some(slot) = self.ledger.get_mut(run) {
                slot.stalled = true;
            }
            self.metrics.stalled();
            self.effects.push(Effect::Stalled { run, place, age });
            let reason = format!("has not answered for {} s", age.as_secs());
            if let Place::Device(device) = place {
                self.fence(device, &reason, now);
            }
            self.fail_attempt(run, place, reason, true, now);
        }
    }

    /// Jobs for whose circuit no device has been well for longer than a stage may take are not kept waiting for ever.
    pub(super) fn give_up_unserved(&mut self, now: Instant) {
        let lost: Vec<(JobKey, String)> = self
            .jobs
            .iter()
            .filter_map(|(key, job)| {
                let at = self.unserved_until(job.circuit)?;
                let waiting = job.waiting_since.checked_add(self.limits.stage_limit)?;
                (at.max(waiting) <= now).then(|| (*key, format!("no device for {}: {}", job.circuit, self.fences())))
            })
            .collect();
        for (key, reason) in lost {
            self.fail(key, reason, now);
        }
    }

    pub(super) fn next_unserved(&self) -> Option<Instant> {
        self.jobs
            .values()
            .filter_map(|job| {
                let waiting = job.waiting_since.checked_add(self.limits.stage_limit)?;
                Some(self.unserved_until(job.circuit)?.max(waiting))
            })
            .min()
    }

    /// Until when jobs of a circuit wait for a device, if all that serve it are sick.
    fn unserved_until(&self, circuit: CircuitId) -> Option<Instant> {
        if self.is_available(circuit) {
            return None;
        }
        let sick_since =
            self.devices.iter().filter(|d| d.serves(circuit)).filter_map(|d| d.fence.as_ref()).map(|f| f.since);
        sick_since.max()?.checked_add(self.limits.stage_limit)
    }

    /// Which devices get no work, and why, in words.
    pub(super) fn fences(&self) -> String {
        let fenced = self.devices.iter().filter_map(|device| Some((&device.spec.id, device.fence.as_ref()?)));
        fenced.map(|(id, fence)| format!("device {id}: {}", fence.reason)).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_circuit_down_to_two_minutes() {
        let limit = |size, secs| stage_limit(CircuitId::porep(size), Duration::from_secs(secs)).as_secs();
        assert_eq!(limit(SectorSize::Gib32, 1800), 1800);
        assert_eq!(limit(SectorSize::Mib512, 1800), 274);
        assert_eq!(limit(SectorSize::Kib2, 1800), 120);
        assert_eq!(limit(SectorSize::Kib2, 60), 60, "never more than for the largest");
    }
}

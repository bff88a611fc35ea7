//! The core's decisions one by one, at times that the tests choose.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_synth::circuit::{CircuitId, CircuitKind, SectorSize};

use super::{
    Core, Effect, Interest, Limits, NewJob, ProofFailure, ProofOrder, Refused, SynthesisFailure, Ticket, TicketKind,
    devices::DeviceSpec,
    finished::Retention,
    identity::Identity,
    job::{JobKey, JobStatus, Outcome, Priority},
    ledger::{Place, Run, Slot},
    params::ParamsState,
};
use crate::{
    memory::{Budget, Shares},
    proving::{ParamsSize, PhaseTimings},
};

pub(super) const CIRCUIT: CircuitId = CircuitId::porep(SectorSize::Kib2);
pub(super) const OTHER: CircuitId = CircuitId::porep(SectorSize::Gib32);
pub(super) const MIB: u64 = 1 << 20;

pub(super) fn limits() -> Limits {
    Limits {
        queued_jobs: 4,
        synthesis_workers: 1,
        lookahead: Some(1),
        attempts: 2,
        group_delay: secs(100),
        retention: Retention { jobs: 8, bytes: u64::MAX, age: secs(1000) },
        abandon_grace: secs(60),
        promote_after: secs(500),
        stage_limit: secs(300),
    }
}

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(super) fn identity(request: u8, payload: u8) -> Identity {
    Identity { request: (request > 0).then_some([request; 32]), payload: [payload; 32] }
}

/// A core, a clock, and shorthands.
pub(super) struct Bench {
    pub(super) core: Core,
    pub(super) now: Instant,
}

impl Bench {
    pub(super) fn new(limits: Limits, devices: usize) -> Self {
        Self::with(limits, (0..devices).map(device).collect())
    }

    pub(super) fn with(limits: Limits, devices: Vec<DeviceSpec>) -> Self {
        let budget = Budget::new(Shares { bodies: 0, queue: 1000, work: 10 * MIB + 100 });
        let mut bench = Self { core: Core::new(limits, budget, devices), now: Instant::now() };
        bench.core.request_params(CIRCUIT, 0, bench.now);
        bench.core.handle_params_loaded(CIRCUIT, Ok(size(100)), bench.now);
        bench.core.take_effects();
        bench
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.core.handle_time(self.now);
    }

    pub(super) fn submit(&mut self, new: NewJob, interest: Interest) -> Result<Ticket, Refused> {
        self.core.submit(new, interest, self.now)
    }

    pub(super) fn accept(&mut self, new: NewJob) -> JobKey {
        self.submit(new, Interest::Detached).unwrap().key
    }

    pub(super) fn synth(&mut self) -> Option<(JobKey, usize)> {
        self.core.poll_synthesis(self.now).map(|run| (run.job, run.partition))
    }

    /// The synthesis of a partition that is under way ends well.
    pub(super) fn synth_done(&mut self, (job, partition): (JobKey, usize)) -> bool {
        let of = |run: &Run, slot: &Slot| (run.job, run.partition, slot.place) == (job, partition, Place::Synthesis);
        let run = self.core.ledger().iter().find(|(run, slot)| of(run, slot)).expect("it is under way").0;
        self.core.handle_synthesized(run, Ok(()), secs(2), self.now)
    }

    pub(super) fn prove(&mut self, device: usize) -> Option<ProofOrder> {
        self.core.poll_proof(device, self.now)
    }

    pub(super) fn proved(
        &mut self,
        order: ProofOrder,
        device: usize,
        result: Result<u8, ProofFailure>,
    ) -> Option<Vec<u8>> {
        let mut timings = PhaseTimings::default();
        timings.add(PhaseTimings::LOCK_HOLD, secs(3));
        self.core.handle_proved(order, device, result.map(|b| [b; 192]), &timings, self.now)
    }

    /// Runs everything to its end on device 0, with proofs filled with `fill`.
    pub(super) fn finish_all(&mut self, fill: u8) {
        loop {
            let mut idle = true;
            while let Some(order) = self.synth() {
                assert!(self.synth_done(order));
                idle = false;
            }
            while let Some(order) = self.prove(0) {
                if let Some(whole) = self.proved(order, 0, Ok(fill)) {
                    self.core.handle_whole_verified(order.run.job, whole, Ok(()), self.now);
                }
                idle = false;
            }
            if idle {
                return;
            }
        }
    }

    fn ended(&mut self) -> Vec<(u64, JobStatus, String)> {
        let effects = self.core.take_effects();
        effects
            .into_iter()
            .filter_map(|e| match e {
                Effect::Ended { outcome, .. } => Some((outcome.key.0, outcome.status, outcome.error.clone())),
                _ => None,
            })
            .collect()
    }

    pub(super) fn outcome(&self, key: JobKey) -> Arc<Outcome> {
        self.core.outcome(key).expect("the job has ended")
    }
}

pub(super) fn job(request: u8, payload: u8) -> NewJob {
    NewJob {
        identity: identity(request, payload),
        label: format!("r{request}"),
        circuit: CIRCUIT,
        priority: Priority::Normal,
        payload_bytes: 100,
        partitions: 1,
        partition_bytes: MIB,
        params_bytes: 0,
    }
}

/// Parameters that are wholly in host memory.
pub(super) fn size(bytes: u64) -> ParamsSize {
    ParamsSize { bytes, host_bytes: bytes }
}

/// A device that takes as many partitions as a test gives it.
pub(super) fn device(n: usize) -> DeviceSpec {
    DeviceSpec { id: format!("gpu-{n}"), workers: 100, express: false, fallback: false, circuits: None }
}

pub(super) fn at(priority: Priority, new: NewJob) -> NewJob {
    NewJob { priority, ..new }
}

#[test]
fn a_job_from_acceptance_to_its_proof() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(NewJob { partitions: 2, ..job(1, 1) });
    b.now += secs(5);
    let (p0, p1) = (b.synth().unwrap(), b.synth().unwrap());
    assert_eq!((p0, p1), ((key, 0), (key, 1)));
    assert_eq!(b.synth(), None);
    assert!(b.synth_done(p1) && b.synth_done(p0));
    let (first, second) = (b.prove(0).unwrap(), b.prove(0).unwrap());
    assert_eq!((first.run.partition, second.run.partition), (0, 1));
    b.now += secs(10);
    assert_eq!(b.proved(second, 0, Ok(2)), None);
    let whole = b.proved(first, 0, Ok(1)).expect("that was the last partition");
    assert_eq!(whole, [[1; 192], [2; 192]].concat(), "in the order of the partitions");
    assert_eq!(b.core.unfinished(), 1, "not done before the whole is verified");
    b.core.handle_whole_verified(key, whole.clone(), Ok(()), b.now);
    let outcome = b.outcome(key);
    assert_eq!((outcome.status, &outcome.proof[..]), (JobStatus::Completed, &whole[..]));
    assert_eq!(outcome.devices, ["gpu-0"]);
    let t = outcome.timings;
    assert_eq!((t.queue_wait, t.synthesis, t.compute, t.total), (secs(5), secs(4), secs(6), secs(15)));
    assert_eq!(b.core.ledger().used(), 0);
}

#[test]
fn the_same_job_is_attached_to_and_then_replayed() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(job(1, 1));
    let again = b.submit(job(1, 1), Interest::Waiting).unwrap();
    assert_eq!((again.key, again.kind), (key, TicketKind::Attached));
    b.finish_all(7);
    let replay = b.submit(job(1, 1), Interest::Detached).unwrap();
    assert_eq!(replay.key, key);
    assert!(matches!(replay.kind, TicketKind::Replayed(o) if o.proof[..] == [7; 192]));
    // The same payload under another id is another job, with a proof of its own.
    assert_ne!(b.accept(job(2, 1)), key);
}

#[test]
fn failed_and_cancelled_jobs_are_tried_again() {
    let mut b = Bench::new(limits(), 1);
    let cancelled = b.accept(job(1, 1));
    assert_eq!(b.core.cancel(cancelled, "why", b.now), Some(true));
    assert_eq!(b.core.cancel(cancelled, "again", b.now), Some(false));
    assert_eq!(b.outcome(cancelled).error, "why");
    let second = b.submit(job(1, 1), Interest::Detached).unwrap();
    assert_eq!(second.kind, TicketKind::New);
    let order = b.core.poll_synthesis(b.now).unwrap();
    assert!(!b.core.handle_synthesized(order, Err(SynthesisFailure::Input("bad tree".into())), secs(1), b.now));
    let failed = b.outcome(second.key);
    assert_eq!(
        (failed.status, failed.error.as_str()),
        (JobStatus::Failed, "partition 0 of 1: a synthesis thread: bad tree")
    );
    assert_eq!(b.submit(job(1, 1), Interest::Detached).unwrap().kind, TicketKind::New);
    assert_eq!(b.core.cancel(JobKey(999), "", b.now), None);
}

#[test]
fn another_payload_under_the_same_id_supersedes() {
    let mut b = Bench::new(limits(), 1);
    let old = b.accept(job(1, 1));
    let running = b.synth().unwrap();
    let new = b.accept(job(1, 2));
    assert_ne!(old, new);
    assert_eq!(b.outcome(old).status, JobStatus::Cancelled);
    assert!(b.outcome(old).error.starts_with("superseded"));
    assert!(!b.synth_done(running), "the late result is not kept");
    b.finish_all(2);
    assert_eq!(b.outcome(new).proof[..], [2; 192]);
    assert!(b.outcome(old).proof.is_empty());
}

#[test]
fn a_superseded_job_is_finished_for_its_waiter() {
    let mut b = Bench::new(limits(), 1);
    let old = b.submit(job(1, 1), Interest::Waiting).unwrap().key;
    let new = b.accept(job(1, 2));
    assert_eq!(b.core.unfinished(), 2);
    b.finish_all(5);
    assert_eq!([old, new].map(|k| b.outcome(k).status), [JobStatus::Completed; 2]);
}

#[test]
fn a_superseded_job_ends_some_time_after_its_last_waiter() {
    let mut b = Bench::new(limits(), 1);
    // Submitted and awaited: without the other payload it would go on unattended.
    let old = b.accept(job(1, 1));
    assert!(b.core.handle_waiter_came(old));
    b.accept(job(1, 2));
    b.core.handle_waiter_gone(old, b.now);
    b.pass(secs(59));
    assert!(b.core.is_unfinished(old), "it may only be between two calls of Await");
    b.pass(secs(1));
    assert!(b.outcome(old).error.starts_with("superseded"));
}

#[test]
fn asking_for_the_older_payload_again_stops_nobody() {
    let mut b = Bench::new(limits(), 1);
    let old = b.submit(job(1, 1), Interest::Waiting).unwrap().key;
    let new = b.accept(job(1, 2));
    assert_eq!(b.accept(job(1, 1)), old);
    b.core.handle_waiter_gone(old, b.now);
    b.pass(secs(100));
    assert!(b.core.is_unfinished(old) && b.core.is_unfinished(new));
}

#[test]
fn jobs_without_an_id_do_not_stop_each_other() {
    let mut b = Bench::new(limits(), 1);
    let (one, two) = (b.accept(job(0, 1)), b.accept(job(0, 2)));
    assert_eq!(b.core.unfinished(), 2);
    assert_eq!((b.accept(job(0, 1)), b.accept(job(0, 2))), (one, two));
}

#[test]
fn priority_then_arrival_partition_by_partition() {
    let mut b = Bench::new(Limits { lookahead: Some(0), ..limits() }, 1);
    let normal = b.accept(NewJob { partitions: 3, ..job(1, 1) });
    let first = b.synth().unwrap();
    let low = b.accept(at(Priority::Low, job(2, 1)));
    let high = b.accept(at(Priority::High, job(3, 1)));
    let critical = b.accept(at(Priority::Critical, job(4, 1)));
    let later = b.accept(job(5, 1));
    let mut order = vec![first.0];
    assert!(b.synth_done(first));
    // One prover that is always a partition behind the one synthesis.
    while let Some(proof) = b.prove(0) {
        if let Some(next) = b.synth() {
            order.push(next.0);
            b.synth_done(next);
        }
        if let Some(whole) = b.proved(proof, 0, Ok(0)) {
            b.core.handle_whole_verified(proof.run.job, whole, Ok(()), b.now);
        }
    }
    assert_eq!(order, [normal, critical, high, normal, normal, later, low]);
}

#[test]
fn positions_count_the_queued_jobs_ahead() {
    let mut b = Bench::new(limits(), 1);
    let position = |b: &mut Bench, new| b.submit(new, Interest::Detached).unwrap().queue_position;
    assert_eq!(position(&mut b, job(1, 1)), 0);
    b.synth().unwrap();
    assert_eq!(position(&mut b, job(2, 1)), 0, "what runs is not queued");
    assert_eq!(position(&mut b, job(3, 1)), 1);
    assert_eq!(position(&mut b, at(Priority::High, job(4, 1))), 0);
    assert_eq!(position(&mut b, at(Priority::Low, job(5, 1))), 3);
    // Asking again with more urgency moves it up.
    assert_eq!(position(&mut b, at(Priority::Critical, job(5, 1))), 0);
}

#[test]
fn a_full_queue_refuses_with_numbers_and_a_hint() {
    let mut b = Bench::new(limits(), 1);
    for n in 1..=4 {
        b.accept(job(n, 1));
    }
    let refused = b.submit(job(5, 1), Interest::Detached).unwrap_err();
    assert_eq!(refused, Refused::QueueFull { jobs: 4, limit: 4, retry_after: secs(10) });
    // The same job is no further one.
    assert_eq!(b.submit(job(4, 1), Interest::Detached).unwrap().kind, TicketKind::Attached);
    b.synth().unwrap();
    b.accept(job(5, 1));

    let mut b = Bench::new(limits(), 1);
    b.accept(NewJob { payload_bytes: 901, ..job(1, 1) });
    let refused = b.submit(job(2, 1), Interest::Detached).unwrap_err();
    assert!(matches!(refused, Refused::BytesFull { held: 901, payload: 100, limit: 1000, .. }));
    assert_eq!(b.core.unfinished(), 1);
    b.finish_all(1);
    b.accept(job(2, 1));
}

#[test]
fn what_can_never_fit_is_refused_at_once() {
    let mut b = Bench::new(limits(), 1);
    let refused = b.submit(NewJob { partition_bytes: 11 * MIB, ..job(1, 1) }, Interest::Detached);
    let work = 10 * MIB + 100;
    let refusal = Refused::NeverFits { circuit: CIRCUIT, params: 0, partition: 11 * MIB, work };
    assert_eq!(refused.unwrap_err(), refusal);
    let refused = b.submit(NewJob { partition_bytes: MIB, params_bytes: 10 * MIB, ..job(1, 1) }, Interest::Detached);
    assert!(matches!(refused.unwrap_err(), Refused::NeverFits { params: 10485760, .. }));
    b.accept(NewJob { partition_bytes: 10 * MIB, ..job(1, 1) });
}

#[test]
fn draining_takes_no_new_jobs_and_finishes_the_old() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(job(1, 1));
    b.core.begin_drain();
    assert_eq!(b.submit(job(2, 1), Interest::Detached).unwrap_err(), Refused::Draining);
    assert_eq!(b.accept(job(1, 1)), key);
    b.finish_all(1);
    assert_eq!(b.outcome(key).status, JobStatus::Completed);
}

#[test]
fn memory_and_hand_over_bound_what_is_synthesized_ahead() {
    let mut b = Bench::new(Limits { lookahead: Some(99), ..limits() }, 1);
    b.accept(NewJob { partitions: 20, partition_bytes: 3 * MIB, ..job(1, 1) });
    let ahead: Vec<_> = std::iter::from_fn(|| b.synth()).collect();
    assert_eq!(ahead.len(), 3, "10 MiB hold three partitions of 3 MiB");
    ahead.into_iter().for_each(|p| assert!(b.synth_done(p)));
    let proof = b.prove(0).unwrap();
    assert_eq!(b.synth(), None, "what is in a prover still holds its memory");
    b.proved(proof, 0, Ok(1));
    assert!(b.synth().is_some());

    let mut b = Bench::new(limits(), 1);
    b.accept(NewJob { partitions: 20, ..job(1, 1) });
    assert_eq!(std::iter::from_fn(|| b.synth()).count(), 2, "two may be ahead");
}

#[test]
fn small_less_urgent_jobs_do_not_overtake_a_large_one() {
    let mut b = Bench::new(Limits { lookahead: Some(99), ..limits() }, 1);
    b.accept(NewJob { partitions: 1, partition_bytes: 4 * MIB, ..job(1, 1) });
    b.accept(NewJob { partition_bytes: 8 * MIB, ..job(2, 1) });
    b.accept(job(3, 1));
    let first = b.synth().unwrap();
    assert_eq!(b.synth(), None);
    b.synth_done(first);
    let proof = b.prove(0).unwrap();
    b.proved(proof, 0, Ok(1));
    assert_eq!(b.synth(), Some((JobKey(2), 0)));
}

#[test]
fn an_urgent_job_displaces_what_was_synthesized_for_others() {
    let mut b = Bench::new(limits(), 1);
    let low = b.accept(NewJob { partitions: 5, ..at(Priority::Low, job(1, 1)) });
    for _ in 0..2 {
        let order = b.synth().unwrap();
        b.synth_done(order);
    }
    b.core.take_effects();
    assert_eq!(b.synth(), None, "its own kind displaces nothing");
    let critical = b.accept(at(Priority::Critical, job(2, 1)));
    assert_eq!(b.synth(), Some((critical, 0)));
    let effects = b.core.take_effects();
    let first = |partition| Effect::Discard(Run { job: low, partition, attempt: 0 });
    assert!(effects.contains(&first(1)), "{effects:?}");
    assert!(!effects.contains(&first(0)), "no more than needed");
    b.synth_done((critical, 0));
    assert_eq!(b.prove(0).unwrap().run.job, critical);
    // The displaced partition is synthesized again in its turn.
    b.finish_all(1);
    assert_eq!(b.core.unfinished(), 1, "the critical one is still in its prover");
}

#[test]
fn waiting_lifts_a_job_but_never_to_critical() {
    let mut b = Bench::new(limits(), 1);
    let low = b.accept(at(Priority::Low, job(1, 1)));
    b.pass(secs(500));
    b.accept(job(2, 1));
    assert_eq!(b.core.waiting(Priority::Normal), 2);
    b.pass(secs(500));
    assert_eq!(b.core.waiting(Priority::High), 2);
    b.pass(secs(5000));
    assert_eq!(b.core.waiting(Priority::High), 2);
    assert_eq!(b.synth(), Some((low, 0)), "among equals the older one goes first");
}

#[test]
fn cancelling_a_running_job_drops_late_results_and_frees_memory_when_they_come() {
    let mut b = Bench::new(Limits { lookahead: Some(2), ..limits() }, 1);
    let key = b.accept(NewJob { partitions: 3, ..job(1, 1) });
    let orders: Vec<_> = std::iter::from_fn(|| b.synth()).collect();
    b.synth_done(orders[0]);
    b.synth_done(orders[1]);
    let proof = b.prove(0).unwrap();
    assert_eq!(b.core.ledger().used(), 3 * MIB);
    b.core.cancel(key, "", b.now);
    assert!(b.core.take_effects().contains(&Effect::Discard(Run { job: key, partition: 1, attempt: 0 })));
    assert_eq!(b.core.ledger().used(), 2 * MIB, "a synthesis thread and a prover still hold theirs");
    assert!(!b.synth_done(orders[2]));
    assert_eq!(b.proved(proof, 0, Ok(1)), None);
    assert_eq!(b.core.ledger().used(), 0);
    assert_eq!(b.prove(0), None);
    assert_eq!(b.outcome(key).status, JobStatus::Cancelled);
}

#[test]
fn an_abandoned_prove_ends_after_its_grace() {
    let mut b = Bench::new(limits(), 1);
    let key = b.submit(job(1, 1), Interest::Waiting).unwrap().key;
    b.core.handle_waiter_gone(key, b.now);
    assert_eq!(b.core.next_deadline(), Some(b.now + secs(60)));
    b.pass(secs(59));
    // The client comes back, and goes again.
    assert_eq!(b.submit(job(1, 1), Interest::Waiting).unwrap().key, key);
    b.pass(secs(100));
    b.core.handle_waiter_gone(key, b.now);
    b.pass(secs(60));
    assert_eq!(b.ended().len(), 1);
    assert!(b.outcome(key).error.starts_with("abandoned"));
}

#[test]
fn a_submitted_job_is_never_abandoned() {
    let mut b = Bench::new(limits(), 1);
    let key = b.submit(job(1, 1), Interest::Waiting).unwrap().key;
    b.accept(job(1, 1));
    b.core.handle_waiter_gone(key, b.now);
    b.pass(secs(400));
    assert!(b.core.is_unfinished(key));
}

#[test]
fn parameters_are_loaded_once_and_hold_up_no_other_circuit() {
    let mut b = Bench::new(limits(), 1);
    b.accept(NewJob { circuit: OTHER, ..job(1, 1) });
    b.accept(NewJob { circuit: OTHER, ..job(2, 1) });
    let ready = b.accept(job(3, 1));
    assert_eq!(b.synth(), Some((ready, 0)));
    assert_eq!(b.synth(), None);
    let loads = b.core.take_effects().into_iter().filter(|e| *e == Effect::LoadParams(OTHER));
    assert_eq!(loads.count(), 1);
    b.now += secs(30);
    b.core.handle_params_loaded(OTHER, Ok(size(5)), b.now);
    assert_eq!(b.synth(), Some((JobKey(1), 0)));
    b.synth_done((ready, 0));
    b.synth_done((JobKey(1), 0));
    b.finish_all(1);
    let t = b.outcome(JobKey(1)).timings;
    assert_eq!((t.params_load, t.queue_wait), (secs(30), secs(30)));
    assert_eq!(b.outcome(ready).timings.params_load, Duration::ZERO);
}

#[test]
fn a_failed_load_fails_those_who_waited_and_no_other() {
    let mut b = Bench::new(limits(), 1);
    let waits = b.accept(NewJob { circuit: OTHER, ..job(1, 1) });
    let other = b.accept(job(2, 1));
    b.synth();
    b.core.handle_params_loaded(OTHER, Err("digest".into()), b.now);
    assert_eq!(b.outcome(waits).error, "loading the parameters of porep-32g: digest");
    assert!(b.core.is_unfinished(other));
    // The next job tries again.
    b.accept(NewJob { circuit: OTHER, ..job(1, 1) });
    b.core.take_effects();
    b.synth();
    assert!(b.core.take_effects().contains(&Effect::LoadParams(OTHER)));
}

#[test]
fn eviction_waits_for_running_jobs() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(job(1, 1));
    let order = b.synth().unwrap();
    let evicted = b.core.evict(CIRCUIT);
    assert_eq!((evicted.was_loaded, evicted.freed_bytes), (true, 0));
    assert_eq!(b.core.status(b.now).params, [(CIRCUIT, 100, 1)]);
    assert!(!b.core.take_effects().contains(&Effect::DropParams(CIRCUIT)));
    b.synth_done(order);
    b.finish_all(1);
    assert_eq!(b.outcome(key).status, JobStatus::Completed);
    assert!(b.core.take_effects().contains(&Effect::DropParams(CIRCUIT)));
    assert!(!b.core.evict(CIRCUIT).was_loaded);
    assert_eq!(b.core.params_state(CIRCUIT), ParamsState::Absent);
}

#[test]
fn a_preload_takes_back_an_eviction_that_waits() {
    let mut b = Bench::new(limits(), 1);
    b.accept(job(1, 1));
    let order = b.synth().unwrap();
    b.core.evict(CIRCUIT);
    assert!(matches!(b.core.request_params(CIRCUIT, 0, b.now), ParamsState::Loaded { .. }));
    b.synth_done(order);
    b.finish_all(1);
    assert_eq!(b.core.evict(CIRCUIT).freed_bytes, 100, "free now, so at once");
}

#[test]
fn a_forgotten_result_is_proven_again() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(job(1, 1));
    b.finish_all(1);
    b.pass(secs(1000));
    assert_eq!(b.core.outcome(key), None);
    assert_eq!(b.core.cancel(key, "", b.now), None);
    assert_eq!(b.submit(job(1, 1), Interest::Detached).unwrap().kind, TicketKind::New);
}

#[test]
fn a_forgotten_attempt_does_not_take_a_later_one_with_it() {
    let mut b = Bench::new(limits(), 1);
    let first = b.accept(job(1, 1));
    b.core.cancel(first, "", b.now);
    b.pass(secs(999));
    let second = b.accept(job(1, 1));
    b.pass(secs(1));
    assert_eq!(b.core.outcome(first), None);
    assert_eq!(b.accept(job(1, 1)), second);
}

#[test]
fn status_counts_each_unfinished_job_once() {
    let mut b = Bench::new(limits(), 1);
    b.accept(NewJob { partitions: 3, ..job(1, 1) });
    b.accept(job(2, 1));
    let (one, two) = (b.synth().unwrap(), b.synth().unwrap());
    b.synth_done(one);
    b.synth_done(two);
    let proof = b.prove(0).unwrap();
    let status = b.core.status(b.now);
    assert_eq!(status.queues[0], (CircuitKind::Porep, 1, 1));
    assert!(status.queues[1..].iter().all(|(_, pending, running)| pending + running == 0));
    assert_eq!(status.device_jobs, [Some((proof.run.job, Some(CircuitKind::Porep)))]);
    b.core.cancel(proof.run.job, "", b.now);
    assert_eq!(b.core.status(b.now).device_jobs, [Some((proof.run.job, None))], "the device still works for it");
}

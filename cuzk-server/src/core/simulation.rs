//! Random lives of a core, with the rules that must hold after every step.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bytes::Bytes;
use cuzk_synth::circuit::{CircuitId, CircuitKind, SectorSize};
use proptest::prelude::*;

use super::{
    Core, CoreStatus, Effect, Interest, Limits, NewJob, ProofFailure, ProofOrder, SynthesisFailure, TicketKind,
    devices::DeviceSpec,
    finished::Retention,
    job::{JobKey, JobStatus, Priority, Stage},
    ledger::{Place, Run},
    params::ParamsState,
    tests::{device, identity, limits, size},
    view::{JobFilter, JobSnapshot, JobState},
};
use crate::{
    memory::{Budget, Shares, Use},
    proving::PhaseTimings,
};

const CIRCUITS: [CircuitId; 2] = [CircuitId::porep(SectorSize::Kib2), CircuitId::porep(SectorSize::Gib32)];
const DEVICES: usize = 2;

/// What can happen. Small numbers choose among what is there, so that steps meet.
#[derive(Clone, Debug)]
enum Step {
    /// Few ids and payloads: most submissions meet an earlier one.
    Submit {
        request: u8,
        payload: u8,
        priority: usize,
        partitions: usize,
        waiting: bool,
    },
    WaiterGone(usize),
    Cancel(usize),
    Synthesize,
    Synthesized {
        which: usize,
        ok: bool,
    },
    Prove {
        device: usize,
    },
    Made(usize),
    Proved {
        which: usize,
        result: u8,
    },
    Loaded {
        circuit: usize,
        ok: bool,
    },
    Evict(usize),
    Dropped,
    Revived {
        ok: bool,
    },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_u8, 1..4_u8, 0..4_usize, 1..4_usize, any::<bool>()).prop_map(
            |(request, payload, priority, partitions, waiting)| Step::Submit {
                request, payload, priority, partitions, waiting
            }
        ),
        2 => any::<usize>().prop_map(Step::WaiterGone),
        1 => any::<usize>().prop_map(Step::Cancel),
        6 => Just(Step::Synthesize),
        6 => (any::<usize>(), prop::bool::weighted(0.95)).prop_map(|(which, ok)| Step::Synthesized { which, ok }),
        6 => (0..DEVICES).prop_map(|device| Step::Prove { device }),
        6 => any::<usize>().prop_map(Step::Made),
        6 => (any::<usize>(), 0..24_u8).prop_map(|(which, result)| Step::Proved { which, result }),
        2 => (0..2_usize, prop::bool::weighted(0.8)).prop_map(|(circuit, ok)| Step::Loaded { circuit, ok }),
        1 => (0..2_usize).prop_map(Step::Evict),
        3 => Just(Step::Dropped),
        2 => any::<bool>().prop_map(|ok| Step::Revived { ok }),
        2 => (0..200_u64).prop_map(Step::Wait),
    ]
}

/// The driver and the clients, as far as the rules are concerned.
struct World {
    core: Core,
    now: Instant,
    /// Accepted jobs: payload, and how they ended if they did.
    accepted: BTreeMap<JobKey, (u8, Option<JobStatus>)>,
    waiters: Vec<JobKey>,
    synthesizing: Vec<Run>,
    /// What the driver keeps between synthesis and proof.
    handover: BTreeSet<Run>,
    /// With devices.
    proving: Vec<(ProofOrder, usize)>,
    /// Whose proofs wait to be verified, or are being verified.
    verifying: Vec<(ProofOrder, usize)>,
    loading: BTreeSet<CircuitId>,
    loaded: BTreeSet<CircuitId>,
    /// Told to leave, still in memory.
    leaving: BTreeSet<CircuitId>,
    reviving: BTreeSet<usize>,
}

/// Parameters of 4 MiB and 5 MiB do not fit beside each other and two partitions.
const SHARES: Shares = Shares { bodies: 0, queue: 700, work: 13 << 20 };
const PARAMS_BYTES: [u64; 2] = [4 << 20, 5 << 20];
const PARTITION_BYTES: u64 = 3 << 20;
const WORKERS: usize = 2;

fn spec(n: usize) -> DeviceSpec {
    DeviceSpec { workers: WORKERS, express: true, ..device(n) }
}

impl World {
    fn new() -> Self {
        let limits = Limits {
            queued_jobs: 5,
            attempts: 3,
            retention: Retention { jobs: 4, bytes: u64::MAX, age: Duration::from_secs(500) },
            ..limits()
        };
        Self {
            core: Core::new(limits, Budget::new(SHARES), (0..DEVICES).map(spec).collect()),
            now: Instant::now(),
            accepted: BTreeMap::new(),
            waiters: Vec::new(),
            synthesizing: Vec::new(),
            handover: BTreeSet::new(),
            proving: Vec::new(),
            verifying: Vec::new(),
            loading: BTreeSet::new(),
            loaded: BTreeSet::new(),
            leaving: BTreeSet::new(),
            reviving: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Submit { request, payload, priority, partitions, waiting } => {
                self.submit(request, payload, priority, partitions, waiting);
            }
            Step::WaiterGone(which) => {
                if let Some(at) = pick(&self.waiters, which) {
                    let key = self.waiters.swap_remove(at);
                    self.core.handle_waiter_gone(key, self.now);
                }
            }
            Step::Cancel(which) => {
                let keys: Vec<JobKey> = self.accepted.keys().copied().collect();
                if let Some(at) = pick(&keys, which) {
                    let was_running = self.core.cancel(keys[at], "", self.now);
                    let ended = self.accepted[&keys[at]].1.is_some();
                    assert_eq!(was_running == Some(true), !ended);
                }
            }
            Step::Synthesize => self.synthesize(),
            Step::Synthesized { which, ok } => {
                if let Some(at) = pick(&self.synthesizing, which) {
                    let run = self.synthesizing.swap_remove(at);
                    let failures = [SynthesisFailure::Input("bad".into()), SynthesisFailure::Panic("worse".into())];
                    let result = if ok { Ok(()) } else { Err(failures[which / 7 % 2].clone()) };
                    if self.core.handle_synthesized(run, result, Duration::ZERO, self.now) {
                        assert!(self.handover.insert(run));
                    }
                }
            }
            Step::Prove { device } => {
                if let Some(order) = self.core.poll_proof(device, self.now) {
                    assert!(self.handover.remove(&order.run), "the assignment is there");
                    assert!(self.core.fence_of(device).is_none(), "a sick device gets no work");
                    let beside = self.proving.iter().filter(|(_, d)| *d == device).count();
                    assert!(beside < WORKERS || (order.urgent && beside == WORKERS), "{beside} are there");
                    assert!(self.loaded.contains(&order.circuit), "the parameters are there");
                    self.proving.push((order, device));
                }
            }
            Step::Made(which) => {
                if let Some(at) = pick(&self.proving, which) {
                    let (order, device) = self.proving.swap_remove(at);
                    self.core.handle_made(order, device, self.now);
                    self.verifying.push((order, device));
                }
            }
            Step::Proved { which, result } => self.proved(which, result),
            Step::Loaded { circuit, ok } => {
                let circuit = CIRCUITS[circuit];
                if self.loading.remove(&circuit) {
                    if ok {
                        self.loaded.insert(circuit);
                    }
                    let bytes = PARAMS_BYTES[CIRCUITS.iter().position(|c| *c == circuit).unwrap()];
                    let result = if ok { Ok(size(bytes)) } else { Err("no".to_owned()) };
                    self.core.handle_params_loaded(circuit, result, self.now);
                }
            }
            Step::Evict(circuit) => {
                let was_loaded = self.core.evict(CIRCUITS[circuit]).was_loaded;
                assert_eq!(was_loaded, self.loaded.contains(&CIRCUITS[circuit]));
            }
            Step::Dropped => {
                if let Some(circuit) = self.leaving.pop_first() {
                    self.core.handle_params_dropped(circuit);
                }
            }
            Step::Revived { ok } => {
                if let Some(device) = self.reviving.pop_first() {
                    let result = if ok { Ok(()) } else { Err("no".to_owned()) };
                    self.core.handle_revived(device, result, self.now);
                }
            }
            Step::Wait(secs) => {
                self.now += Duration::from_secs(secs);
                self.core.handle_time(self.now);
                assert!(self.core.next_deadline().is_none_or(|at| at > self.now), "all that was due is done");
            }
        }
        self.effects();
        self.rules();
    }

    fn submit(&mut self, request: u8, payload: u8, priority: usize, partitions: usize, waiting: bool) {
        let new = NewJob {
            identity: identity(request, payload),
            label: String::new(),
            circuit: CIRCUITS[usize::from(payload) % 2],
            priority: Priority::ALL[priority],
            payload_bytes: 100,
            partitions,
            partition_bytes: PARTITION_BYTES,
            params_bytes: PARAMS_BYTES[usize::from(payload) % 2],
        };
        let interest = if waiting { Interest::Waiting } else { Interest::Detached };
        let Ok(ticket) = self.core.submit(new, interest, self.now) else { return };
        match ticket.kind {
            TicketKind::New => {
                assert!(self.accepted.insert(ticket.key, (payload, None)).is_none(), "keys are unique");
            }
            TicketKind::Attached => assert_eq!(self.accepted[&ticket.key], (payload, None)),
            TicketKind::Replayed(outcome) => {
                assert_eq!(self.accepted[&ticket.key], (payload, Some(JobStatus::Completed)));
                assert_eq!(outcome.proof[0], payload, "never another payload's proof");
                return;
            }
        }
        if waiting {
            self.waiters.push(ticket.key);
        }
    }

    /// Whatever is synthesized next, nothing more urgent could have been; among equals only a job whose parameters are not
    /// there is passed over.
    fn synthesize(&mut self) {
        let Some(run) = self.core.poll_synthesis(self.now) else { return };
        let chosen = &self.core.jobs[&run.job];
        assert!(self.loaded.contains(&chosen.circuit), "the parameters are there");
        for (key, job) in &self.core.jobs {
            let before = (job.priority, std::cmp::Reverse(*key)) > (chosen.priority, std::cmp::Reverse(run.job));
            let waits = !job.held && job.first_at(super::job::Stage::Waiting).is_some();
            let able = waits && self.loaded.contains(&job.circuit);
            assert!(!(before && able), "{key:?} goes before {run:?}");
            // Its parameters are on their way, perhaps since this very call, or have no room yet.
            let late = job.passed_since.is_some_and(|since| self.now - since >= limits().group_delay);
            let loading = matches!(self.core.params_state(job.circuit), ParamsState::Loading { .. });
            let on_its_way = loading || !self.core.is_available(job.circuit);
            assert!(!(before && waits && late) || on_its_way, "{key:?} has been passed over for too long");
        }
        self.synthesizing.push(run);
    }

    /// A prover fails, or a proof was verified.
    fn proved(&mut self, which: usize, result: u8) {
        let failure = match result {
            0 => Some(ProofFailure::Device("no".into())),
            1 => Some(ProofFailure::Sick("no".into())),
            2 => Some(ProofFailure::Stopped),
            3 => Some(ProofFailure::Panic("no".into())),
            _ => None,
        };
        let from = if failure.is_some() { &mut self.proving } else { &mut self.verifying };
        let Some(at) = pick(from, which) else { return };
        let (order, device) = from.swap_remove(at);
        let payload = self.accepted[&order.run.job].0;
        let proven = match (failure, result) {
            (Some(failure), _) => Err(failure),
            (None, 4) => Err(ProofFailure::BadProof),
            (None, 5) => Err(ProofFailure::Panic("no".into())),
            (None, 7) => Err(ProofFailure::Input("no".into())),
            (None, _) => Ok([payload; 192]),
        };
        let whole = self.core.handle_proved(order, device, proven, &PhaseTimings::default(), self.now);
        if let Some(whole) = whole {
            assert!(whole.iter().all(|b| *b == payload), "only its own partitions");
            let verified = if result == 6 { Err("no".to_owned()) } else { Ok(()) };
            self.core.handle_whole_verified(order.run.job, whole, verified, self.now);
        }
    }

    fn effects(&mut self) {
        for effect in self.core.take_effects() {
            match effect {
                Effect::Ended { outcome, .. } => {
                    let (payload, ended) = self.accepted.get_mut(&outcome.key).expect("only accepted jobs end");
                    assert_eq!(ended.replace(outcome.status), None, "once");
                    if outcome.status == JobStatus::Completed {
                        assert!(outcome.proof.iter().all(|b| b == payload), "its own proof");
                        assert!(!outcome.proof.is_empty());
                    } else {
                        assert_eq!(outcome.proof, Bytes::new());
                    }
                    self.waiters.retain(|key| *key != outcome.key);
                }
                Effect::Discard(run) => assert!(self.handover.remove(&run)),
                Effect::LoadParams(circuit) => {
                    assert!(!self.loaded.contains(&circuit) && !self.leaving.contains(&circuit));
                    assert!(self.loading.insert(circuit), "one load at a time");
                }
                Effect::DropParams(circuit) => {
                    assert!(self.loaded.remove(&circuit) && self.leaving.insert(circuit));
                    assert_eq!(self.core.ledger().in_flight(circuit), 0, "nobody works with them");
                }
                Effect::Revive(device) => assert!(self.reviving.insert(device), "one attempt at a time"),
                Effect::Started { .. }
                | Effect::Retried { .. }
                | Effect::Stalled { .. }
                | Effect::Fenced { .. }
                | Effect::Proved { .. }
                | Effect::Revived { .. }
                | Effect::Forgotten(_) => {}
            }
        }
    }

    fn rules(&self) {
        let unfinished = self.accepted.values().filter(|(_, ended)| ended.is_none()).count();
        let status = self.core.status(self.now);
        let counted: u32 = status.queues.iter().map(|(_, pending, running)| pending + running).sum();
        assert_eq!((counted as usize, self.core.unfinished()), (unfinished, unfinished));
        let pending: u32 = status.queues.iter().map(|(_, pending, _)| pending).sum();
        assert!(pending <= 5 && self.core.queued_bytes() <= 700, "the queue is bounded");
        let waiting: usize = Priority::ALL.into_iter().map(|p| self.core.waiting(p)).sum();
        assert_eq!(waiting, pending as usize);

        self.views_agree(&status);

        let ledger = self.core.ledger();
        let (budget, work) = (ledger.budget(), SHARES.work);
        assert!(budget.used_for(Use::Witness) + budget.used_for(Use::Params) <= work, "no overrun: {budget:?}");
        let circuits = self.loading.iter().chain(&self.loaded).chain(&self.leaving);
        let held: u64 = circuits.map(|c| PARAMS_BYTES[CIRCUITS.iter().position(|o| o == c).unwrap()]).sum();
        assert_eq!(budget.used_for(Use::Params), held, "the books are right");
        assert_eq!(budget.used_for(Use::Queue), self.core.queued_bytes());
        let in_place = |place: fn(&Place) -> bool| ledger.iter().filter(|(_, s)| place(&s.place)).count();
        assert_eq!(in_place(|p| *p == Place::Synthesis), self.synthesizing.len());
        assert_eq!(in_place(|p| *p == Place::Handover), self.handover.len());
        assert_eq!(in_place(|p| matches!(p, Place::Device(_))), self.proving.len());
        assert_eq!(in_place(|p| matches!(p, Place::Verification(_))), self.verifying.len());
        let with_memory = self.synthesizing.len() + self.handover.len() + self.proving.len();
        assert_eq!(ledger.used(), with_memory as u64 * PARTITION_BYTES, "a proof alone takes none");
        assert!(self.core.retained().0 <= 4);

        for (key, job) in &self.core.jobs {
            let waiters = self.waiters.iter().filter(|w| *w == key).count();
            assert_eq!(job.waiters as usize, waiters);
            assert!(
                waiters > 0 || job.runs_unattended() || job.abandon_at.is_some(),
                "a job that nobody wants has an end"
            );
        }
    }

    /// What watchers see is what is counted.
    fn views_agree(&self, status: &CoreStatus) {
        let all = self.core.list(&JobFilter { limit: usize::MAX, ..JobFilter::default() }, self.now);
        let in_state = |state| all.iter().filter(|job| job.state == state).count();
        let counted = |f: fn(&(CircuitKind, u32, u32)) -> u32| status.queues.iter().map(f).sum::<u32>() as usize;
        assert_eq!(in_state(JobState::Queued), counted(|q| q.1));
        assert_eq!(in_state(JobState::Running), counted(|q| q.2));
        assert_eq!(all.len(), self.core.unfinished() + self.core.retained().0);
        for listed in &all {
            let alone = self.core.snapshot(listed.key, self.now).expect("what is listed is known");
            assert_eq!(JobSnapshot { partitions: Vec::new(), ..alone.clone() }, *listed);
            assert_eq!(listed.counts.total() as usize, alone.partitions.len());
            match self.accepted[&listed.key].1 {
                Some(status) => assert_eq!(listed.state, JobState::Ended(status)),
                None => assert!(!listed.state.is_ended()),
            }
            for partition in alone.partitions.iter().filter(|_| !listed.state.is_ended()) {
                let held = matches!(partition.stage, Stage::Synthesizing | Stage::Ready | Stage::Proving);
                assert_eq!(partition.since.is_some(), held, "who works at it has its memory");
                let on_device = matches!(partition.stage, Stage::Proving | Stage::Proved);
                assert_eq!(partition.device.is_some(), on_device);
            }
        }
    }

    /// With everything answered and no more clients, every job ends.
    fn wind_down(&mut self) {
        for _ in 0..1000 {
            for circuit in [0, 1] {
                self.step(Step::Loaded { circuit, ok: true });
            }
            self.step(Step::Dropped);
            self.step(Step::Revived { ok: true });
            self.step(Step::Synthesize);
            self.step(Step::Synthesized { which: 0, ok: true });
            for device in 0..DEVICES {
                self.step(Step::Prove { device });
            }
            self.step(Step::Made(0));
            self.step(Step::Proved { which: 0, result: 9 });
            self.step(Step::Wait(1));
            if self.core.unfinished() == 0 && self.core.ledger().iter().next().is_none() {
                return;
            }
        }
        panic!("unfinished: {:?}", self.core.jobs);
    }
}

fn pick<T>(from: &[T], which: usize) -> Option<usize> {
    (!from.is_empty()).then(|| which % from.len())
}

proptest! {
    // Lives of some 150 steps fill the queue, the hand-over and the retention several times over.
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_life_keeps_the_rules(steps in prop::collection::vec(step(), 1..300)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.wind_down();
        prop_assert!(world.accepted.values().all(|(_, ended)| ended.is_some()));
    }
}

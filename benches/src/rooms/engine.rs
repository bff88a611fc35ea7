//! The engine's decisions: the scheduler's state machine, and the jobs it keeps.

use std::time::{Duration, Instant};

use anyhow::Result;
use cuzk_server::{
    ParamsSize, PhaseTimings, ProofRequest,
    core::{
        Core, Effect, Interest, Limits, NewJob, TicketKind,
        devices::DeviceSpec,
        finished::Retention,
        identity::Identity,
        job::{JobStatus, Priority},
    },
    memory::{Budget, Shares},
};
use cuzk_synth::circuit::CircuitKind;

use super::{CIRCUIT, Calibration, Candidates, Operation, Tier};

pub(super) fn add(operations: &mut Vec<Operation>) {
    let one = Calibration::OneThread;
    operations.push(Operation::new(["scheduler", "jobs"], "200x10", Tier::Ci, one, |c| scheduler(c, 200)));
    operations.push(Operation::new(["store", "jobs"], "1000", Tier::Ci, one, |c| store(c, 1000)));
}

const DEVICES: usize = 2;
const PARTITIONS: usize = 10;

/// Jobs of ten partitions in all four priorities, submitted at once, then every decision until the last has ended.
pub(super) fn scheduler(candidates: &mut Candidates, jobs: usize) -> Result<()> {
    let ids: Vec<Identity> = (0..jobs).map(identity).collect();
    let run = move |mut core: Core| {
        let now = Instant::now();
        for (i, identity) in ids.iter().enumerate() {
            let new = new_job(*identity, Priority::ALL[i % Priority::ALL.len()], PARTITIONS);
            core.submit(new, Interest::Detached, now).expect("there is room");
        }
        let mut ended = 0;
        while core.unfinished() > 0 {
            work_off(&mut core, now);
            ended += core.take_effects().iter().filter(|effect| matches!(effect, Effect::Ended { .. })).count();
        }
        ended
    };
    candidates.ours_with("cuzk", move || core(jobs), run, |ended| *ended == jobs)
}

/// The jobs of the in-memory engine: each one submitted, proven, found again by its identity and by its key.
pub(super) fn store(candidates: &mut Candidates, jobs: usize) -> Result<()> {
    let run = move |mut core: Core| {
        let now = Instant::now();
        let mut found = 0;
        for i in 0..jobs {
            let new = new_job(identity(i), Priority::Normal, 1);
            let key = core.submit(new, Interest::Detached, now).expect("there is room").key;
            while core.is_unfinished(key) {
                work_off(&mut core, now);
            }
            core.take_effects();
            let replayed = core.attach(&identity(i / 2), Priority::Normal, Interest::Detached);
            let replayed = matches!(replayed.map(|ticket| ticket.kind), Some(TicketKind::Replayed(_)));
            let completed = core.outcome(key).is_some_and(|outcome| outcome.status == JobStatus::Completed);
            found += usize::from(replayed && completed);
        }
        found
    };
    candidates.ours_with("cuzk", move || core(jobs), run, |found| *found == jobs)
}

/// One partition through synthesis, and one through each device.
fn work_off(core: &mut Core, now: Instant) {
    if let Some(order) = core.poll_synthesis(now) {
        core.handle_synthesized(order, Ok(()), Duration::ZERO, now);
    }
    for device in 0..DEVICES {
        let Some(order) = core.poll_proof(device, now) else { continue };
        let whole = core.handle_proved(order, device, Ok([1; 192]), &PhaseTimings::default(), now);
        if let Some(whole) = whole {
            core.handle_whole_verified(order.run.job, whole, Ok(()), now);
        }
    }
}

/// An engine with room for so many jobs, parameters loaded.
pub(super) fn core(jobs: usize) -> Core {
    let limits = Limits {
        queued_jobs: jobs,
        synthesis_workers: 1,
        lookahead: Some(1),
        attempts: 3,
        group_delay: Duration::from_secs(120),
        retention: Retention { jobs, bytes: u64::MAX, age: Duration::from_secs(3600) },
        abandon_grace: Duration::from_secs(60),
        promote_after: Duration::from_secs(1800),
        stage_limit: Duration::from_secs(1800),
    };
    let budget = Budget::new(Shares { bodies: 0, queue: u64::MAX, work: 16 << 30 });
    let device =
        |n: usize| DeviceSpec { id: n.to_string(), workers: 2, express: false, fallback: false, circuits: None };
    let mut core = Core::new(limits, budget, (0..DEVICES).map(device).collect());
    let now = Instant::now();
    core.request_params(CIRCUIT, 1 << 30, now);
    core.handle_params_loaded(CIRCUIT, Ok(ParamsSize { bytes: 1 << 30, host_bytes: 1 << 30 }), now);
    core.take_effects();
    core
}

fn identity(i: usize) -> Identity {
    let mut request = ProofRequest::new(CircuitKind::Porep);
    request.sector_number = i as u64;
    Identity::of(&i.to_string(), &request)
}

fn new_job(identity: Identity, priority: Priority, partitions: usize) -> NewJob {
    NewJob {
        identity,
        label: "bench".to_owned(),
        circuit: CIRCUIT,
        priority,
        payload_bytes: 40 << 20,
        partitions,
        partition_bytes: 400 << 20,
        params_bytes: 1 << 30,
    }
}

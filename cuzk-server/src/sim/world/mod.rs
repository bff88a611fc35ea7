//! The events of a simulated engine, and the rules that must hold after each.

mod devices;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    time::{Duration, Instant},
};

use cuzk_synth::circuit::CircuitId;
use rand::{Rng, SeedableRng, rngs::StdRng};

use self::devices::{Gpu, Proving};
use super::{Report, Scenario, model::Costs, processor::Processor, trace::Arrival};
use crate::{
    core::{
        Core, Effect, Interest, Limits, NewJob, TicketKind,
        devices::DeviceSpec,
        finished::Retention,
        identity::Identity,
        job::{JobKey, JobStatus, Priority},
        ledger::Run,
    },
    memory::Budget,
    proving::ParamsSize,
};

/// A rule that did not hold: a fault in the core or in the simulator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at} s: {rule}")]
pub struct Violation {
    /// When.
    pub at: String,
    /// Which.
    pub rule: String,
}

/// What happens at a time that is known beforehand. What the CPU does is in the [`Processor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    Arrival(usize),
    KernelsEnd(Run),
    Loaded(CircuitId),
    Revived(usize),
    Cancel(JobKey),
    /// The core wants to be told the time.
    Clock,
}

/// A CPU task of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cpu {
    Synthesis(Run),
    Stage(Run),
    Beside(Run),
    Tail(Run),
}

struct World {
    scenario: Scenario,
    core: Core,
    epoch: Instant,
    now: f64,
    timed: BinaryHeap<Reverse<(Ordered, Timed)>>,
    cpu: Processor<Cpu>,
    gpus: Vec<Gpu>,
    proving: HashMap<Run, Proving>,
    synthesizing: usize,
    clock: Option<f64>,
    random: StdRng,
    /// Accepted jobs: when they came, how urgent they were, whether they have ended.
    jobs: BTreeMap<JobKey, (f64, Priority, bool)>,
    /// When the first synthesis began: parameters are in memory.
    began: Option<f64>,
    /// By priority.
    completed: [usize; 4],
    report: Report,
}

/// Seconds in an order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// More events than any trace needs: a run that does not end is a violation.
const MOST_EVENTS: usize = 20_000_000;

/// Simulates a scenario to its end.
///
/// # Errors
/// The first rule that does not hold.
pub fn run(scenario: &Scenario) -> Result<Report, Violation> {
    let mut world = World::new(scenario.clone());
    for _ in 0..MOST_EVENTS {
        world.work()?;
        if world.done() {
            return world.finish();
        }
        world.step()?;
    }
    Err(world.violation("the run does not end"))
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let machine = &scenario.machine;
        let limits = Limits {
            queued_jobs: usize::MAX,
            synthesis_workers: machine.synthesis_workers,
            lookahead: machine.lookahead,
            attempts: machine.attempts,
            group_delay: Duration::from_secs(120),
            retention: Retention { jobs: 16, bytes: u64::MAX, age: Duration::from_secs(3600) },
            abandon_grace: Duration::from_secs(60),
            promote_after: Duration::from_secs(1800),
            stage_limit: Duration::from_secs(1800),
        };
        let device = |n: usize| DeviceSpec {
            id: n.to_string(),
            workers: machine.workers_per_device,
            express: machine.express,
            fallback: false,
            circuits: None,
        };
        let core = Core::new(limits, Budget::new(machine.memory), (0..machine.devices).map(device).collect());
        let arrivals = scenario.trace.iter().enumerate();
        Self {
            core,
            epoch: Instant::now(),
            now: 0.0,
            timed: arrivals.map(|(n, a)| Reverse((Ordered(a.at), Timed::Arrival(n)))).collect(),
            cpu: Processor::new(machine),
            gpus: vec![Gpu::default(); machine.devices],
            proving: HashMap::new(),
            synthesizing: 0,
            clock: None,
            random: StdRng::seed_from_u64(scenario.faults.seed),
            jobs: BTreeMap::new(),
            began: None,
            completed: [0; 4],
            report: Report::default(),
            scenario,
        }
    }

    fn instant(&self) -> Instant {
        self.epoch + Duration::from_secs_f64(self.now)
    }

    fn costs(&self, circuit: CircuitId) -> Costs {
        self.scenario.machine.costs.of(circuit)
    }

    fn violation(&self, rule: impl Into<String>) -> Violation {
        Violation { at: format!("{:.3}", self.now), rule: rule.into() }
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.r#gen::<f64>() < probability
    }

    fn after(&mut self, seconds: f64, what: Timed) {
        self.timed.push(Reverse((Ordered(self.now + seconds), what)));
    }

    /// Nothing will come and nothing is unfinished. Threads that hang are forgotten.
    fn done(&self) -> bool {
        let arrivals = self.timed.iter().any(|Reverse((_, what))| matches!(what, Timed::Arrival(_)));
        !arrivals && self.core.unfinished() == 0 && self.cpu.next_end().is_none() && self.gpus.iter().all(Gpu::is_idle)
    }

    /// Gives out all work there is.
    fn work(&mut self) -> Result<(), Violation> {
        loop {
            // One effect may bring others.
            while self.effects()? {}
            let mut idle = true;
            if self.synthesizing < self.scenario.machine.synthesis_workers
                && let Some(run) = self.core.poll_synthesis(self.instant())
            {
                let circuit = self.circuit(run);
                self.synthesizing += 1;
                self.began.get_or_insert(self.now);
                self.cpu.start(Cpu::Synthesis(run), self.costs(circuit).synthesis);
                idle = false;
            }
            for device in 0..self.gpus.len() {
                if let Some(order) = self.core.poll_proof(device, self.instant()) {
                    let proving = Proving { order, device, kernels_end: false, beside_end: false, waited_for: 0 };
                    self.proving.insert(order.run, proving);
                    let costs = self.costs(order.circuit);
                    self.cpu.start(Cpu::Stage(order.run), costs.stage);
                    self.cpu.start(Cpu::Beside(order.run), costs.beside);
                    idle = false;
                }
            }
            // Polling may have asked for parameters.
            while self.effects()? {
                idle = false;
            }
            self.check()?;
            if idle {
                return Ok(());
            }
        }
    }

    fn circuit(&self, run: Run) -> CircuitId {
        let slot = self.core.ledger().iter().find(|(r, _)| *r == run);
        slot.expect("what was just given out is in the ledger").1.circuit
    }

    /// Goes to the next event and lets it happen.
    fn step(&mut self) -> Result<(), Violation> {
        self.set_clock();
        let timed = self.timed.peek().map(|Reverse((Ordered(at), _))| *at);
        let cpu = self.cpu.next_end().map(|seconds| self.now + seconds);
        let next = match (timed, cpu) {
            (None, None) => return Err(self.violation("jobs are unfinished, and nothing will happen any more")),
            (Some(at), None) | (None, Some(at)) => at,
            (Some(a), Some(b)) => a.min(b),
        };
        let passed = (next - self.now).max(0.0);
        self.account(passed);
        let ended = self.cpu.pass(passed);
        self.now = self.now.max(next);
        for task in ended {
            self.cpu_ended(task)?;
        }
        while let Some(Reverse((Ordered(at), what))) = self.timed.peek().copied()
            && at <= self.now
        {
            self.timed.pop();
            self.happened(what)?;
        }
        Ok(())
    }

    /// Makes sure that the core is told the time when it wants to.
    fn set_clock(&mut self) {
        let Some(at) = self.core.next_deadline() else { return };
        // A little later: a Duration rounds down, and the core compares exactly.
        let at = at.saturating_duration_since(self.epoch).as_secs_f64() + 1e-6;
        if self.clock.is_none_or(|clock| clock <= self.now || at < clock) {
            self.clock = Some(at.max(self.now));
            self.timed.push(Reverse((Ordered(at.max(self.now)), Timed::Clock)));
        }
    }

    fn account(&mut self, seconds: f64) {
        let held = self.gpus.iter().filter(|gpu| gpu.holder.is_some()).count() as f64;
        let running = |gpu: &&Gpu| gpu.holder.is_some_and(|run| self.proving.get(&run).is_some_and(|p| !p.kernels_end));
        let kernels = self.gpus.iter().filter(running).count() as f64;
        self.report.busy += held * seconds;
        self.report.kernels += kernels * seconds;
        self.report.peak_bytes = self.report.peak_bytes.max(self.core.ledger().budget().used());
    }

    fn happened(&mut self, what: Timed) -> Result<(), Violation> {
        let now = self.instant();
        match what {
            Timed::Arrival(n) => self.arrive(self.scenario.trace[n], n),
            Timed::KernelsEnd(run) => {
                if let Some(proving) = self.proving.get_mut(&run) {
                    proving.kernels_end = true;
                    self.release_if_done(run)?;
                }
            }
            Timed::Loaded(circuit) => {
                let bytes = self.costs(circuit).params_bytes;
                self.core.handle_params_loaded(circuit, Ok(ParamsSize { bytes, host_bytes: bytes }), now);
            }
            Timed::Revived(device) => {
                let failed = self.happens(self.scenario.faults.revival);
                let result = if failed { Err("still sick".to_owned()) } else { Ok(()) };
                self.core.handle_revived(device, result, now);
            }
            Timed::Cancel(key) => {
                self.core.cancel(key, "cancelled", now);
            }
            Timed::Clock => {
                self.clock = None;
                self.core.handle_time(now);
            }
        }
        Ok(())
    }

    fn arrive(&mut self, arrival: Arrival, n: usize) {
        let costs = self.costs(arrival.circuit);
        let mut payload = [0; 32];
        payload[..8].copy_from_slice(&(n as u64).to_le_bytes());
        let new = NewJob {
            identity: Identity { request: None, payload },
            label: String::new(),
            circuit: arrival.circuit,
            priority: arrival.priority,
            payload_bytes: if arrival.partitions() > 1 { 52 << 20 } else { 1 << 20 },
            partitions: arrival.partitions(),
            partition_bytes: costs.partition_bytes,
            params_bytes: costs.params_bytes,
        };
        match self.core.submit(new, Interest::Detached, self.instant()) {
            Ok(ticket) => {
                debug_assert_eq!(ticket.kind, TicketKind::New);
                self.jobs.insert(ticket.key, (self.now, arrival.priority, false));
                if self.happens(self.scenario.faults.cancel) {
                    let after = self.random.r#gen::<f64>() * 60.0;
                    self.after(after, Timed::Cancel(ticket.key));
                }
            }
            Err(_) => self.report.refused += 1,
        }
    }

    /// Carries out what the core asks for. `false`: nothing.
    fn effects(&mut self) -> Result<bool, Violation> {
        let effects = self.core.take_effects();
        let any = !effects.is_empty();
        for effect in effects {
            self.effect(effect)?;
        }
        Ok(any)
    }

    fn effect(&mut self, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::LoadParams(circuit) => {
                self.report.loads += 1;
                self.after(self.costs(circuit).load, Timed::Loaded(circuit));
            }
            Effect::DropParams(circuit) => self.core.handle_params_dropped(circuit),
            Effect::Revive(device) => self.after(1.0, Timed::Revived(device)),
            // A new context: whatever hung in the old one is gone.
            Effect::Fenced { device, .. } => self.clear(device),
            Effect::Ended { outcome, .. } => return self.ended(outcome.key, outcome.status),
            Effect::Started { .. }
            | Effect::Discard(_)
            | Effect::Retried { .. }
            | Effect::Stalled { .. }
            | Effect::Proved { .. }
            | Effect::Revived { .. }
            | Effect::Forgotten(_) => {}
        }
        Ok(())
    }

    fn ended(&mut self, key: JobKey, status: JobStatus) -> Result<(), Violation> {
        let Some((came, priority, ended)) = self.jobs.get_mut(&key) else {
            return Err(self.violation(format!("{key:?} ends and was never accepted")));
        };
        if std::mem::replace(ended, true) {
            return Err(self.violation(format!("{key:?} ends twice")));
        }
        let (took, priority) = (self.now - *came, *priority as usize);
        match status {
            JobStatus::Completed => {
                self.report.completed += 1;
                self.completed[priority] += 1;
                self.report.longest[priority] = self.report.longest[priority].max(took);
                self.report.mean[priority] += took;
            }
            JobStatus::Failed => self.report.failed += 1,
            JobStatus::Cancelled => self.report.cancelled += 1,
        }
        self.report.seconds = self.now - self.began.unwrap_or(self.now);
        Ok(())
    }

    /// What must hold at any time.
    fn check(&self) -> Result<(), Violation> {
        let budget = self.core.ledger().budget();
        if budget.used() > self.scenario.machine.memory.total() {
            return Err(self.violation(format!("more memory is reserved than there is: {budget:?}")));
        }
        let unfinished = self.jobs.values().filter(|(.., ended)| !ended).count();
        if unfinished != self.core.unfinished() {
            return Err(
                self.violation(format!("{unfinished} jobs have not ended, {} are known", self.core.unfinished()))
            );
        }
        for (device, gpu) in self.gpus.iter().enumerate() {
            let there = self.proving.values().filter(|p| p.device == device).count();
            let most = self.scenario.machine.workers_per_device + usize::from(self.scenario.machine.express);
            if there > most {
                return Err(self.violation(format!("{there} partitions are on device {device}, {gpu:?}")));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Report, Violation> {
        if let Some((key, _)) = self.jobs.iter().find(|(_, (.., ended))| !ended) {
            return Err(self.violation(format!("{key:?} is lost")));
        }
        let left = self.core.ledger().used();
        if left > 0 {
            return Err(self.violation(format!("{left} bytes of partitions are still reserved")));
        }
        let devices = self.gpus.len() as f64;
        let report = &mut self.report;
        if report.seconds > 0.0 {
            report.busy /= report.seconds * devices;
            report.kernels /= report.seconds * devices;
        }
        for (mean, count) in report.mean.iter_mut().zip(self.completed) {
            *mean /= count.max(1) as f64;
        }
        Ok(self.report)
    }
}

//! The one definition of every bench: criterion, the comparer, the table of peers and the instruction counts all run these.
//!
//! An [`Operation`] is one computation on one input; its [`Candidate`]s are the implementations of it, ours and peers',
//! whose results are checked before any is timed. Ids read room/implementation/field/size.

mod arithmetic;
mod arkworks;
mod constraints;
mod counted;
mod engine;
mod groth16;
mod porep;
mod requests;
mod store;
mod toy;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

pub use porep::{CIRCUIT, SEED, library};

/// Which runs an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The subset that takes CI a few minutes; part of the full set too.
    Ci,
    /// The full set only.
    Full,
    /// Small and deterministic: instructions are counted, time is not taken.
    Counted,
}

/// What the time of an operation is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibration {
    /// Field products on one thread, for what runs on one thread.
    OneThread,
    /// Field products on all threads.
    AllThreads,
    /// A pass over memory on all threads, for what waits for memory.
    Memory,
}

/// One computation on one input.
pub struct Operation {
    /// Where in the house it happens.
    pub room: &'static str,
    /// What it computes with: a field, a group, a format.
    pub field: &'static str,
    /// The size of the input.
    pub size: String,
    /// Which runs it belongs to.
    pub tier: Tier,
    /// What its time is compared with.
    pub calibration: Calibration,
    prepare: Prepare,
}

/// Makes the input of an operation and adds its implementations.
type Prepare = Box<dyn Fn(&mut Candidates) -> Result<()>>;

/// One implementation of an operation, its input ready and its result checked.
pub struct Candidate {
    /// Its name.
    pub implementation: String,
    /// Whether it is a peer's.
    pub peer: bool,
    /// How long its latest run took: at first the one whose result was checked.
    pub latest: Duration,
    run: Box<dyn FnMut() -> Duration>,
}

/// The implementations of an operation, as they are prepared.
pub struct Candidates {
    with_peers: bool,
    list: Vec<Candidate>,
}

/// All operations.
pub fn all() -> Vec<Operation> {
    let mut operations = Vec::new();
    requests::add(&mut operations);
    constraints::add(&mut operations);
    arithmetic::add(&mut operations);
    groth16::add(&mut operations);
    engine::add(&mut operations);
    store::add(&mut operations);
    porep::add(&mut operations);
    counted::add(&mut operations);
    operations
}

impl Operation {
    fn new(
        [room, field]: [&'static str; 2],
        size: impl Into<String>,
        tier: Tier,
        calibration: Calibration,
        prepare: impl Fn(&mut Candidates) -> Result<()> + 'static,
    ) -> Self {
        Self { room, field, size: size.into(), tier, calibration, prepare: Box::new(prepare) }
    }

    /// Its id: room/field/size.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.room, self.field, self.size)
    }

    /// The id of an implementation of it.
    pub fn bench_id(&self, implementation: &str) -> String {
        format!("{}/{implementation}/{}/{}", self.room, self.field, self.size)
    }

    /// The ids that implementations of ours may have, known before anything is prepared.
    pub fn ours(&self) -> impl Iterator<Item = String> + '_ {
        // What counts instructions has no AVX-512.
        let implementations: &[&str] =
            if self.tier == Tier::Counted { &["cuzk", "portable"] } else { &["cuzk", "gadgets", "portable", "ifma"] };
        implementations.iter().map(|implementation| self.bench_id(implementation))
    }

    /// Makes the input, runs every implementation once and checks its result.
    ///
    /// # Errors
    /// What could not be made, or who computes something wrong.
    pub fn prepare(&self, with_peers: bool) -> Result<Vec<Candidate>> {
        let mut candidates = Candidates { with_peers, list: Vec::new() };
        (self.prepare)(&mut candidates).with_context(|| format!("bench {}", self.id()))?;
        Ok(candidates.list)
    }
}

impl Candidate {
    /// Runs it once and says how long it took, making of input not counted.
    pub fn run(&mut self) -> Duration {
        self.latest = (self.run)();
        self.latest
    }
}

impl Candidates {
    /// Adds an implementation of ours.
    fn ours<T: 'static>(
        &mut self,
        implementation: impl Into<String>,
        mut run: impl FnMut() -> T + 'static,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Result<()> {
        self.add(implementation.into(), false, || (), move |()| run(), is_right)
    }

    /// The same for one that uses up its input.
    fn ours_with<I: 'static, T: 'static>(
        &mut self,
        implementation: impl Into<String>,
        input: impl FnMut() -> I + 'static,
        run: impl FnMut(I) -> T + 'static,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Result<()> {
        self.add(implementation.into(), false, input, run, is_right)
    }

    /// Adds a peer's, if peers are wanted; `make` makes it ready then.
    fn peer<T: 'static, R: FnMut() -> T + 'static>(
        &mut self,
        implementation: &str,
        make: impl FnOnce() -> Result<R>,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Result<()> {
        if self.with_peers {
            let mut run = make()?;
            self.add(implementation.to_owned(), true, || (), move |()| run(), is_right)?;
        }
        Ok(())
    }

    fn add<I: 'static, T: 'static>(
        &mut self,
        implementation: String,
        peer: bool,
        mut input: impl FnMut() -> I + 'static,
        mut run: impl FnMut(I) -> T + 'static,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Result<()> {
        let mut once = move || {
            let (mut input, mut output) = (Some(input()), None);
            let took = measured_region(&mut || output = input.take().map(|input| black_box(run(input))));
            // The output is dropped after the clock has stopped.
            (took, output)
        };
        let (latest, output) = once();
        ensure!(output.is_some_and(|output| is_right(&output)), "{implementation} gives a wrong result");
        self.list.push(Candidate { implementation, peer, latest, run: Box::new(move || once().0) });
        Ok(())
    }
}

/// The function that is timed, and whose instructions are counted: exactly one in the program has this name.
#[inline(never)]
fn measured_region(work: &mut dyn FnMut()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// 2^log_n as it is written in ids.
fn power(log_n: u32) -> String {
    format!("2^{log_n}")
}

/// The name of an arithmetic in ids.
fn name(backend: cuzk_gpu::arith::Backend) -> String {
    format!("{backend:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_within_times_and_within_counts() {
        for counted in [false, true] {
            let operations = all();
            let ids: Vec<String> =
                operations.iter().filter(|o| (o.tier == Tier::Counted) == counted).map(Operation::id).collect();
            assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
            assert!(ids.iter().all(|id| id.split('/').count() == 3), "{ids:?}");
        }
    }

    #[test]
    fn a_wrong_result_is_refused() {
        let operation = Operation::new(["sum", "u32"], "2", Tier::Ci, Calibration::OneThread, |candidates| {
            candidates.ours("right", || 1 + 1, |sum| *sum == 2)?;
            candidates.peer("wrong", || Ok(|| 1 + 2), |sum| *sum == 2)
        });
        assert_eq!(operation.prepare(false).expect("peers are not asked").len(), 1);
        let error = operation.prepare(true).err().expect("a wrong peer");
        assert_eq!(format!("{error:#}"), "bench sum/u32/2: wrong gives a wrong result");
    }

    /// Sets up and checks every operation that is quick to set up, peers included.
    #[test]
    fn counted_operations_and_their_peers_give_right_results() {
        for operation in all().iter().filter(|o| o.tier == Tier::Counted) {
            for mut candidate in operation.prepare(true).expect("right results") {
                assert!(candidate.run() > Duration::ZERO, "{}", operation.id());
            }
        }
    }
}

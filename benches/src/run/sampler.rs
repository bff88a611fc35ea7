//! Rounds over benches. A round visits every bench once, so that a slow minute of the machine falls on all of them alike
//! and shows in the spread of their rounds.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;

use super::calibration::Calibrations;
use crate::{
    baseline::stats::{Visit, median},
    rooms::{Calibration, Candidate, Operation},
};

/// Seconds that a visit gives to samples of a quick bench.
const VISIT: f64 = 0.2;
/// Samples of a visit at most.
const MOST_SAMPLES: f64 = 15.0;
/// Seconds that a sample takes at least: several runs of quick benches are one sample.
const SAMPLE: f64 = 0.002;
/// Benches that take longer do not care about cold caches.
const LONG: f64 = 0.05;

/// A bench, ready to be visited.
pub struct Bench {
    /// See [`Operation::bench_id`].
    pub id: String,
    /// What is run.
    pub candidate: Candidate,
    calibration: Calibration,
}

/// What the rounds brought for one bench.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// Times of the calibration, by round.
    pub ratios: Vec<f64>,
    /// Seconds, by round.
    pub seconds: Vec<f64>,
}

impl Bench {
    /// Prepares the implementations of an operation for which `wanted` says so, by their ids.
    ///
    /// # Errors
    /// See [`Operation::prepare`].
    pub fn prepare(operation: &Operation, peers: bool, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Self>> {
        let ready = |candidate: Candidate| {
            let id = operation.bench_id(&candidate.implementation);
            wanted(&id).then(|| Self { id, candidate, calibration: operation.calibration })
        };
        Ok(operation.prepare(peers)?.into_iter().filter_map(ready).collect())
    }

    /// Takes samples, each between two calibrations.
    fn visit(&mut self, calibrations: &mut Calibrations) -> Visit {
        if self.candidate.latest.as_secs_f64() < LONG {
            // What ran before has emptied the caches.
            self.candidate.run();
        }
        let latest = self.candidate.latest.as_secs_f64();
        // A long sample is compared with more than a glimpse of the machine.
        let at_least = Duration::from_secs_f64((latest / 20.0).clamp(0.002, 0.1));
        let repeats = (SAMPLE / latest).ceil().clamp(1.0, 1e6) as u32;
        let samples = (VISIT / (latest * f64::from(repeats))).clamp(1.0, MOST_SAMPLES) as usize;
        let mut visit = Visit::default();
        visit.calibrations.push(calibrations.measure(self.calibration, at_least));
        for _ in 0..samples {
            let took: Duration = (0..repeats).map(|_| self.candidate.run()).sum();
            visit.samples.push(took.as_secs_f64() / f64::from(repeats));
            visit.calibrations.push(calibrations.measure(self.calibration, at_least));
        }
        visit
    }
}

/// Visits every bench in every round.
pub fn run(benches: &mut [&mut Bench], rounds: usize) -> BTreeMap<String, Rounds> {
    let mut calibrations = Calibrations::default();
    let mut measured = BTreeMap::<String, Rounds>::new();
    if benches.is_empty() {
        return measured;
    }
    for round in 1..=rounds {
        for bench in &mut *benches {
            let visit = bench.visit(&mut calibrations);
            let rounds = measured.entry(bench.id.clone()).or_default();
            rounds.ratios.push(visit.ratio());
            rounds.seconds.push(median(&visit.samples));
        }
        eprintln!("round {round} of {rounds}: {} benches", benches.len());
    }
    measured
}

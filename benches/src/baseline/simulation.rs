//! The comparer on a made-up noisy machine: ten unchanged runs in a row pass, a slow-down of 1.5 is caught.

use std::{collections::BTreeMap, convert::Infallible};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    compare::{Row, compare, fails},
    file::{Baseline, Provenance},
    stats::{Summary, Visit},
    verdict::{Rule, Verdict},
};

const BENCHES: usize = 40;
const ROUNDS: usize = 5;
const SAMPLES: usize = 5;

/// A machine shared with others.
struct Machine {
    rng: StdRng,
    /// How much slower than at its best it is at the moment, as a logarithm.
    drift: f64,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), drift: 0.0 }
    }

    /// Near enough to a standard normal variable: the sum of twelve uniform ones, less six.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.rng.r#gen::<f64>()).sum::<f64>() - 6.0
    }

    /// Time that something takes now: the drift of the machine, 3 % of noise, and now and then a neighbour's turn.
    fn time(&mut self, best: f64) -> f64 {
        self.drift = 0.98 * self.drift + 0.03 * self.normal();
        let hiccup = if self.rng.gen_bool(0.08) { self.rng.gen_range(1.0..3.0) } else { 1.0 };
        best * (self.drift + 0.03 * self.normal()).exp() * hiccup
    }

    fn visit(&mut self, best: f64) -> Visit {
        let mut visit = Visit { samples: Vec::new(), calibrations: vec![self.time(1.0)] };
        for _ in 0..SAMPLES {
            visit.samples.push(self.time(best));
            visit.calibrations.push(self.time(1.0));
        }
        visit
    }

    /// One run over some benches. Each starts 2 % off, for where its memory happens to lie this time.
    fn run(&mut self, benches: &[usize], slowed: impl Fn(usize) -> f64) -> BTreeMap<String, Summary> {
        let placed: Vec<f64> = benches.iter().map(|&i| best(i) * slowed(i) * (0.02 * self.normal()).exp()).collect();
        let mut ratios = vec![Vec::new(); benches.len()];
        for _ in 0..ROUNDS {
            for (ratios, &best) in ratios.iter_mut().zip(&placed) {
                ratios.push(self.visit(best).ratio());
            }
        }
        let summed_up = |ratios: &Vec<f64>| Summary::of(ratios).expect("times are positive");
        benches.iter().zip(&ratios).map(|(i, ratios)| (i.to_string(), summed_up(ratios))).collect()
    }

    fn compare(&mut self, baseline: &Baseline, slowed: impl Fn(usize) -> f64) -> Vec<Row> {
        let now = self.run(&ALL, &slowed);
        let again = |ids: &[String]| {
            let benches: Vec<usize> = ids.iter().map(|id| id.parse().expect("a number")).collect();
            Ok::<_, Infallible>(self.run(&benches, &slowed))
        };
        let Ok(rows) = compare(baseline, "here", Rule::TIME, now, again);
        rows
    }

    fn recorded(&mut self) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.record("here", Provenance::default(), &self.run(&ALL, |_| 1.0));
        baseline
    }
}

const ALL: [usize; BENCHES] = {
    let mut all = [0; BENCHES];
    let mut i = 0;
    while i < BENCHES {
        all[i] = i;
        i += 1;
    }
    all
};

/// What a bench takes in times of the calibration: from a tenth to a thousand.
fn best(i: usize) -> f64 {
    0.1 * 1.26f64.powi(i as i32)
}

#[test]
fn ten_unchanged_runs_in_a_row_pass() {
    for seed in 0..40 {
        let mut machine = Machine::new(seed);
        let baseline = machine.recorded();
        for run in 0..10 {
            let rows = machine.compare(&baseline, |_| 1.0);
            let slower = rows.iter().find(|row| row.verdict == Verdict::Slower);
            assert!(!fails(&rows), "seed {seed}, run {run}: {slower:?}");
        }
    }
}

#[test]
fn a_slow_down_of_one_and_a_half_is_caught() {
    for seed in 0..40 {
        let mut machine = Machine::new(1000 + seed);
        let baseline = machine.recorded();
        let victim = machine.rng.gen_range(0..BENCHES);
        let rows = machine.compare(&baseline, |i| if i == victim { 1.5 } else { 1.0 });
        for row in rows {
            let expected = row.id == victim.to_string();
            assert_eq!(row.verdict == Verdict::Slower, expected, "seed {seed}: {row:?}");
        }
    }
}

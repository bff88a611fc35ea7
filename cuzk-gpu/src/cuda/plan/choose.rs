//! The search: every way to do each stage, the rest of the memory filled with points, the fastest of what fits.
//!
//! For each combination of ways more memory only means more points that stay, and the combinations are the same for any
//! memory: so a plan for more memory is never slower by the cost model.

use super::{
    BG2, Card, Config, Line, Matrices, MemoryPlan, NoPlan, Rows, Shape, Vector,
    cost::Rates,
    fixed::Fixed,
    stage::{Choice, Stage},
};
use crate::cuda::ntt::table::TableShape;

/// A combination of choices, and where it puts the points.
struct Candidate<'a> {
    /// In the order in which their points are kept: the sums over the witness wait for uploads, that over h hardly.
    choices: Vec<Choice<'a>>,
    first: (TableShape, Matrices),
    /// Of each choice.
    vectors: Vec<Vec<Vector>>,
    seconds: f64,
    pinned: usize,
}

/// The fastest plan that fits.
pub(super) fn choose(shape: &Shape, card: &Card, config: &Config) -> Result<MemoryPlan, NoPlan> {
    let rates = Rates::of(card);
    let fixed = Fixed::of(shape, card, config);
    let (h, witness) = (Stage::h(shape, &rates, card.sms), Stage::witness(shape, &rates, card.sms));
    let g2 = (config.b_g2 != BG2::Cpu).then(|| Stage::g2(shape, &rates, card.sms));
    let (h, witness) = (h.choices(), witness.choices());
    let g2: Vec<_> = g2.iter().flat_map(Stage::choices).map(Some).chain([None]).collect();
    let matrices = match config.rows {
        Rows::Matrices => vec![Matrices::Resident, Matrices::STREAMED],
        Rows::Planes => vec![Matrices::Absent],
    };

    let mut best: Option<Candidate<'_>> = None;
    let mut least = usize::MAX;
    let mut least_pinned: Option<usize> = None;
    let tables = fixed.tables().iter().flat_map(|table| matrices.iter().map(|matrices| (*table, *matrices)));
    for first in tables {
        for h in &h {
            for witness in &witness {
                for g2 in &g2 {
                    let choices = [Some(witness), g2.as_ref(), Some(h)].into_iter().flatten();
                    let needed = fixed.needed(first, choices.clone());
                    least = least.min(needed);
                    let Some(left) = fixed.limit.checked_sub(needed) else { continue };
                    let computing: f64 = choices.clone().map(|choice| choice.way.seconds).sum();
                    if best.as_ref().is_some_and(|best| computing > best.seconds) {
                        continue;
                    }
                    let candidate = Candidate::fill(choices.copied().collect(), first, left, &fixed, &rates, config);
                    if config.b_g2 == BG2::Auto && g2.is_some() && candidate.pinned > fixed.pinned(Matrices::Absent) {
                        continue;
                    }
                    if candidate.pinned > config.pinned_limit {
                        least_pinned = Some(least_pinned.unwrap_or(usize::MAX).min(candidate.pinned));
                    } else if best.as_ref().is_none_or(|best| candidate.is_better_than(best)) {
                        best = Some(candidate);
                    }
                }
            }
        }
    }
    let (log_n, limit) = (shape.log_n, fixed.limit);
    match (best, least_pinned) {
        (Some(best), _) => Ok(best.plan(shape, config, &fixed)),
        (None, Some(needed)) => Err(NoPlan::Pinned { log_n, limit, needed, pinned_limit: config.pinned_limit }),
        (None, None) => Err(NoPlan::Device { log_n, needed: least, limit, whence: fixed.whence }),
    }
}

impl<'a> Candidate<'a> {
    /// Fills what is left of the memory with points.
    fn fill(
        choices: Vec<Choice<'a>>,
        first: (TableShape, Matrices),
        mut left: usize,
        fixed: &Fixed,
        rates: &Rates,
        config: &Config,
    ) -> Self {
        let vectors: Vec<_> = choices.iter().map(|choice| choice.vectors(&mut left)).collect();
        let mut seconds = fixed.first_stage(first, rates);
        let mut pinned = fixed.pinned(first.1);
        for (choice, vectors) in choices.iter().zip(&vectors) {
            let streamed = vectors.iter().map(Vector::pinned_bytes).sum();
            seconds += choice.way.seconds.max(rates.upload(streamed));
            pinned += streamed;
        }
        if config.b_g2 != BG2::Cpu && choices.len() < 3 {
            seconds += fixed.tail(rates);
        }
        Self { choices, first, vectors, seconds, pinned }
    }

    /// Faster, or as fast with less host memory.
    fn is_better_than(&self, other: &Self) -> bool {
        self.seconds.total_cmp(&other.seconds).then(self.pinned.cmp(&other.pinned)).is_lt()
    }

    fn plan(self, shape: &Shape, config: &Config, fixed: &Fixed) -> MemoryPlan {
        let Self { choices, first, vectors, seconds, .. } = self;
        let mut lines = fixed.lines(first, &choices);
        let stays = |v: &Vector| match v.is_resident() {
            true if v.tables > 1 => format!("points of {}, with {} tables of multiples", v.name, v.tables - 1),
            true => format!("points of {}", v.name),
            false => format!("points of {}, {} of {} streamed", v.name, v.points - v.resident, v.points),
        };
        let line = |v: &Vector| Line { what: stays(v), device: v.device_bytes(), pinned: v.pinned_bytes() };
        lines.extend(vectors.iter().flatten().map(line));
        let find = |name| vectors.iter().flatten().find(|v| v.name == name).copied();
        let expect = |name| find(name).expect("the stages have a vector of each query");
        let way = |name| {
            let of = vectors.iter().position(|stage| stage.iter().any(|v| v.name == name))?;
            Some(choices[of].way.plan.clone())
        };
        MemoryPlan {
            shape: *shape,
            config: *config,
            h: expect("h"),
            l: expect("l"),
            a: expect("a"),
            b_g1: expect("b_g1"),
            b_g2: find("b_g2"),
            table: first.0,
            matrices: first.1,
            h_msm: way("h").expect("the stage of h is always there"),
            witness_msm: way("l").expect("the stage of the witness is always there"),
            g2_msm: way("b_g2"),
            lines,
            limit: fixed.limit,
            seconds,
        }
    }
}

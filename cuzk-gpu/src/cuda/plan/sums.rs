//! The ways to do a stage of multi-scalar multiplications: how many points at once, how many tables, which workspace.
//!
//! The candidates are the same whatever memory there is, which makes a plan for more memory never a slower one.

use super::{
    cost::{G2_FACTOR, Rates},
    shape::Shape,
};
use crate::cuda::msm::{Plan, Request, Size};

/// Bytes of a point in the kernels' form.
pub(super) const G1_BYTES: usize = 96;
/// As above.
pub(super) const G2_BYTES: usize = 192;

/// One way to do a stage.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// Plan of one call.
    pub plan: Plan,
    /// Points (of h) or auxiliary variables (of the other queries) that a call takes.
    pub part: usize,
    /// Bytes of the workspace.
    pub workspace: usize,
    /// Seconds of all calls.
    pub seconds: f64,
}

/// A query of the witness: its points, and the auxiliary variables that may have one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub points: usize,
    /// Points of public inputs at most: they come before the first variable's.
    pub inputs: usize,
}

/// Ways to do the sum over h.
pub(super) fn of_h(points: usize, rates: &Rates, sms: usize) -> Vec<Way> {
    let mut ways = Vec::new();
    for part in parts(points) {
        // Multiples are of use only where points stay. Of so many at most: the model may want fewer.
        let most_tables: &[usize] = if part == points { &[1, 2, 4, 8, 13] } else { &[1] };
        for &tables in most_tables {
            let request = Request {
                queries: vec![Size { points: part, scalars: part, bits: 0 }],
                tables,
                streamed: part < points,
                workspace: 0,
                point_bytes: G1_BYTES,
                sms,
            };
            ways.extend(with_workspaces(request).map(|plan| {
                let seconds = rates.compute(plan.seconds()) * points.div_ceil(part) as f64;
                Way { part, workspace: plan.workspace_bytes(), seconds, plan }
            }));
        }
    }
    undominated(ways)
}

/// Ways to do the sums of some queries over the witness.
pub(super) fn of_witness(shape: &Shape, queries: &[Query], point_bytes: usize, rates: &Rates, sms: usize) -> Vec<Way> {
    let factor = if point_bytes == G2_BYTES { G2_FACTOR } else { 1.0 };
    let bits: f64 = queries.iter().map(|query| rates.bits(query.points)).sum();
    let ways = parts(shape.aux).flat_map(|part| {
        let scalars = shape.room.full.min(part + shape.inputs);
        let size = |query: &Query| Size { points: query.points_of(part), scalars, bits: part };
        let request = Request {
            queries: queries.iter().map(size).collect(),
            tables: 1,
            streamed: part < shape.aux,
            workspace: 0,
            point_bytes,
            sms,
        };
        with_workspaces(request).map(move |plan| {
            // A part may have as many full values as it has variables, but all parts together have no more than one could.
            let all = plan.seconds() * (shape.room.full as f64 / scalars.max(1) as f64).max(1.0);
            let parts = (shape.aux.div_ceil(part) - 1) as f64 * plan.part_seconds();
            let seconds = factor * (rates.compute(all + parts) + bits);
            Way { part, workspace: plan.workspace_bytes(), seconds, plan }
        })
    });
    undominated(ways.collect())
}

impl Query {
    /// The most points that a part of so many variables has.
    pub(super) fn points_of(&self, part: usize) -> usize {
        self.points.min(part + self.inputs)
    }
}

/// Everything at once, or powers of four that make between 2 and 128 parts and are not tiny.
fn parts(len: usize) -> impl Iterator<Item = usize> {
    const SMALLEST: usize = 1 << 20;
    let powers = (0..usize::BITS - 1)
        .step_by(2)
        .map(|log| 1 << log)
        .filter(move |&part| part >= SMALLEST && part < len && len.div_ceil(part) <= 128);
    powers.chain([len])
}

/// The plans for a request in much and in little workspace.
fn with_workspaces(request: Request) -> impl Iterator<Item = Plan> {
    let bounds = (28..36).step_by(2).map(|log| 1usize << log).chain([usize::MAX]);
    let mut plans: Vec<Plan> =
        bounds.filter_map(|workspace| Plan::choose(Request { workspace, ..request.clone() })).collect();
    plans.dedup_by(|a, b| a.windows == b.windows);
    plans.into_iter()
}

/// Without those that another one of the same part and tables beats in memory and time, or equals.
fn undominated(ways: Vec<Way>) -> Vec<Way> {
    let beats = |(i, a): (usize, &Way), (j, b): (usize, &Way)| {
        a.part == b.part
            && a.plan.windows.tables() == b.plan.windows.tables()
            && a.workspace <= b.workspace
            && a.seconds <= b.seconds
            && ((a.workspace, a.seconds) != (b.workspace, b.seconds) || i < j)
    };
    let all = || ways.iter().enumerate();
    let keep: Vec<bool> = all().map(|way| !all().any(|other| beats(other, way))).collect();
    ways.into_iter().zip(keep).filter_map(|(way, keep)| keep.then_some(way)).collect()
}

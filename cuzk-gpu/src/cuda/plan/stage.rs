//! The stages of multi-scalar multiplications, and the choices that there are for each.

use super::{
    Shape, Vector,
    cost::Rates,
    sums::{self, G1_BYTES, G2_BYTES, Query, Way},
};

/// Queries whose sums are made together.
pub(super) struct Stage {
    /// Smaller ones first: in that order they stay on the device.
    queries: Vec<(&'static str, Query)>,
    point_bytes: usize,
    /// What `Way::part` counts, in all.
    items: usize,
    ways: Vec<Way>,
}

/// One way to do a stage, with a number of queries of which all points stay on the device.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    stage: &'a Stage,
    pub way: &'a Way,
    /// The first so many queries stay.
    whole: usize,
    /// Bytes behind H in the arena: the workspace, and two parts of each query that does not stay.
    pub scratch: usize,
    /// Bytes of the queries that stay.
    pub kept: usize,
}

impl Stage {
    /// Σ h_i H_i.
    pub(super) fn h(shape: &Shape, rates: &Rates, sms: usize) -> Self {
        let points = (1 << shape.log_n) - 1;
        let queries = vec![("h", Query { points, inputs: 0 })];
        Self { queries, point_bytes: G1_BYTES, items: points, ways: sums::of_h(points, rates, sms) }
    }

    /// The sums over the witness in G1.
    pub(super) fn witness(shape: &Shape, rates: &Rates, sms: usize) -> Self {
        let l = Query { points: shape.aux, inputs: 0 };
        let a = Query { points: shape.a_points, inputs: shape.inputs };
        let b = Query { points: shape.b_points, inputs: shape.inputs };
        let ways = sums::of_witness(shape, &[l, a, b], G1_BYTES, rates, sms);
        Self { queries: vec![("b_g1", b), ("l", l), ("a", a)], point_bytes: G1_BYTES, items: shape.aux, ways }
    }

    /// The sum over the witness in G2.
    pub(super) fn g2(shape: &Shape, rates: &Rates, sms: usize) -> Self {
        let b = Query { points: shape.b_points, inputs: shape.inputs };
        let ways = sums::of_witness(shape, &[b], G2_BYTES, rates, sms);
        Self { queries: vec![("b_g2", b)], point_bytes: G2_BYTES, items: shape.aux, ways }
    }

    /// All choices. What does not stay is streamed, which takes at least two parts.
    pub(super) fn choices(&self) -> Vec<Choice<'_>> {
        let all = self.queries.len();
        let ways = self.ways.iter().flat_map(|way| {
            // Multiples are of use only where all points stay.
            let least = if way.part >= self.items || way.plan.windows.tables() > 1 { all } else { 0 };
            (least..=all).map(move |whole| (way, whole))
        });
        ways.map(|(way, whole)| {
            let (stay, streamed) = self.queries.split_at(whole);
            let buffers: usize = streamed.iter().map(|(_, query)| 2 * query.points_of(way.part)).sum();
            let points: usize = stay.iter().map(|(_, query)| query.points).sum();
            Choice {
                stage: self,
                way,
                whole,
                scratch: way.workspace + buffers * self.point_bytes,
                kept: points * way.plan.windows.tables() * self.point_bytes,
            }
        })
        .collect()
    }
}

impl Choice<'_> {
    /// Where the points are, if of those that need not stay as many do as `left` bytes have room for.
    pub(super) fn vectors(&self, left: &mut usize) -> Vec<Vector> {
        let Stage { queries, point_bytes, items, .. } = self.stage;
        let vector = |(i, &(name, query)): (usize, &(&'static str, Query))| {
            let resident = if i < self.whole {
                query.points
            } else {
                let most = query.points.min(*left / point_bytes);
                // Of h, whole parts only. Which points of a query are those of a part is not known here.
                let resident = if query.points == *items { most / self.way.part * self.way.part } else { most };
                *left -= resident * point_bytes;
                resident
            };
            let tables = self.way.plan.windows.tables();
            let most = query.points_of(self.way.part);
            let part = self.way.part;
            Vector { name, points: query.points, point_bytes: *point_bytes, tables, part, resident, most }
        };
        queries.iter().enumerate().map(vector).collect()
    }
}

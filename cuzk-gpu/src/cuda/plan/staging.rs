//! A partition in a worker's own device memory, and in the page-locked copy of the beginning of that.

use super::{Rows, Shape};
use crate::cuda::{
    arena::{Layout, Region},
    fr::Element,
    ntt::{PlanesRegion, quotient::Workspace},
    spmv::WitnessRegion,
};

/// Where everything is.
#[derive(Clone, Copy, Debug)]
pub struct Staging {
    /// The witness.
    pub witness: WitnessRegion,
    /// A·w and B·w, if they come with the witness.
    pub rows: Option<[PlanesRegion; 2]>,
}

impl Staging {
    /// Adds the buffers of a worker to a layout that is empty.
    pub fn plan(layout: &mut Layout, shape: &Shape, rows: Rows) -> Self {
        let Shape { inputs, aux, log_n, room, .. } = *shape;
        match rows {
            Rows::Matrices => Self { witness: WitnessRegion::plan(layout, inputs, aux, room.full), rows: None },
            Rows::Planes => {
                let witness = WitnessRegion::plan_for_sums(layout, inputs, aux, room.full);
                let rows = [(); 2].map(|()| PlanesRegion::plan(layout, log_n, room.exceptions));
                Self { witness, rows: Some(rows) }
            }
        }
    }

    /// Bytes of the page-locked copy.
    pub fn host_bytes(&self) -> usize {
        match &self.rows {
            Some([_, b]) => b.used(b.capacity()).end,
            None => self.witness.values().bytes().end,
        }
    }

    /// Adds to a layout what H is made from and in, but for the planes of A and B that are here; see [`Workspace::plan`].
    pub fn workspace(&self, h: Region<Element>, layout: &mut Layout, shape: &Shape) -> Workspace {
        let (log_n, exceptions) = (shape.log_n, shape.room.exceptions);
        match self.rows {
            Some(rows) => Workspace::with_rows(rows, h, layout, log_n, exceptions),
            None => Workspace::plan(h, layout, log_n, exceptions),
        }
    }
}

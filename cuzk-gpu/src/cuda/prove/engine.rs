//! What the kernel phase works with: points, matrices, kernels and one workspace.

use cuzk_synth::r1cs::R1cs;

use super::{
    conveyor::Conveyor,
    placed::{Placed, Places},
    queries::{Queried, Queries},
    rows::Rows,
};
use crate::{
    arith::{G1, G2},
    cuda::{
        arena::{Arena, Layout, Region},
        load::{List, LoadError},
        msm::Msm,
        ntt::{Ntt, Quotient, plan::padded_len, quotient::Workspace},
        plan::{MemoryPlan, Staging},
        stream::Stream,
    },
    srs,
};

/// The kernel phase's own: points, matrices, plans and the workspace. The conveyor is dropped first: it waits for copies
/// into the others.
pub(super) struct Engine {
    pub conveyor: Conveyor,
    pub arena: Arena,
    /// The matrices, if rows do not come with the witness.
    pub rows: Option<Rows>,
    pub ntt: Ntt,
    pub quotient: Quotient,
    pub vectors: Workspace,
    /// How many values of A·w, B·w and their product are exceptions.
    pub counts: Region<u32>,
    pub h: Placed,
    pub msm_h: Msm<G1>,
    /// l, a and b_g1.
    pub witness: Queries<G1>,
    /// b_g2, if its sum is the device's.
    pub g2: Option<Queries<G2>>,
}

impl Engine {
    /// Allocates the arena of a plan, lets `load` fill the places of the parameter file's lists in it, and makes all else.
    ///
    /// # Errors
    /// What `load` says; [`LoadError::Device`] if there is not the memory that the plan says, or what the driver reports.
    pub(super) fn new(
        stream: &Stream,
        (plan, staging): (&MemoryPlan, &Staging),
        lists: &srs::Layout,
        load: impl FnOnce(Vec<List<'_>>) -> Result<(), LoadError>,
        r1cs: &R1cs,
    ) -> Result<Self, LoadError> {
        let mut kept = Layout::new();
        let h_vector = kept.add(padded_len(plan.shape.log_n));
        let counts = kept.add(3);
        let mut places = Places::plan(plan, r1cs, &mut kept);

        let [mut rows, mut sum_h, mut sum_witness, mut sum_g2] = [(); 4].map(|()| kept.clone());
        let vectors = staging.workspace(h_vector, &mut rows, &plan.shape);
        let row_buffers = Rows::plan_buffers(plan.matrices, &mut rows);
        let msm_h = Msm::new(stream, plan.h_msm.clone(), &mut sum_h)?;
        let msm_witness = Msm::new(stream, plan.witness_msm.clone(), &mut sum_witness)?;
        let msm_g2 = plan.g2_msm.clone().map(|plan| Msm::new(stream, plan, &mut sum_g2)).transpose()?;
        places.plan_buffers(&mut sum_h, &mut sum_witness, &mut sum_g2);
        let layout = rows.overlay(sum_h).overlay(sum_witness).overlay(sum_g2);
        let arena = Arena::new(stream.gpu(), &layout, "the points and the workspace of a circuit")?;

        load(places.lists(stream.gpu(), lists, &arena)?)?;
        let Places { h, witness: [l, a, b_g1], b_g2 } = places;
        if plan.h.tables > 1 {
            msm_h.fill_tables(stream, h.base(0, &arena))?;
        }
        let density = &r1cs.density;
        let inputs: Vec<u32> = (0..r1cs.num_inputs as u32).collect();
        let in_b: Vec<u32> = density.b_inputs.iter_ones().map(|i| i as u32).collect();
        let queries = vec![
            Queried::new(stream, l, &[], None)?,
            Queried::new(stream, a, &inputs, Some(&density.a_aux))?,
            Queried::new(stream, b_g1, &in_b, Some(&density.b_aux))?,
        ];
        let g2 = match (msm_g2, b_g2, plan.b_g2) {
            (Some(msm), Some(placed), Some(vector)) => {
                let query = Queried::new(stream, placed, &in_b, Some(&density.b_aux))?;
                Some(Queries::new(msm, vec![query], vector.part))
            }
            _ => None,
        };
        Ok(Self {
            conveyor: Conveyor::new(stream.gpu())?,
            arena,
            rows: Rows::new(stream, r1cs, plan.matrices, row_buffers)?,
            ntt: Ntt::with_table(stream, plan.table)?,
            quotient: Quotient::new(stream, plan.shape.log_n)?,
            vectors,
            counts,
            h,
            msm_h,
            witness: Queries::new(msm_witness, queries, plan.l.part),
            g2,
        })
    }
}

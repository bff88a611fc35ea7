//! A circuit on a device: its matrices and points, and the workspace of its kernel phase, all made once.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_synth::{bitmap::Bitmap, r1cs::R1cs, witness::CompactWitness};

use super::{
    conveyor::Conveyor,
    placed::Placed,
    queries::{Queried, Queries, value_bounds},
    rows::Rows,
    slots::Slots,
    staging::Staging,
};
use crate::{
    arith::{G1, G2},
    cuda::{
        arena::{Arena, Layout, Region},
        gpu::Gpu,
        load::{self, Buffers, LoadError},
        msm::{Base, Msm},
        ntt::{Ntt, Quotient, plan::padded_len, quotient::Workspace},
        plan::{LOADING_BYTES, MemoryPlan, Parts, Shape, Vector},
        points::Checks,
        stream::Stream,
    },
    prover::ProvingKey,
    srs::{self, Srs, Watch},
};

/// A circuit on a device.
pub struct DeviceKey {
    pub(super) host: Arc<Srs>,
    pub(super) r1cs: Arc<R1cs>,
    plan: MemoryPlan,
    pub(super) staging: Staging,
    pub(super) slots: Arc<Slots>,
    /// Only who holds the device's lock takes it.
    pub(super) engine: Mutex<Engine>,
}

/// A parameter file, and how it is read.
pub struct Source<'a> {
    /// The file.
    pub path: &'a Path,
    /// What is checked of its points.
    pub checks: Checks,
    /// Threads that read.
    pub readers: usize,
    /// Who is told, and can stop it.
    pub watch: &'a Watch<'a>,
}

/// The kernel phase's own: points, matrices, plans and the workspace. The conveyor is dropped first: it waits for copies
/// into the others.
pub(super) struct Engine {
    pub conveyor: Conveyor,
    pub arena: Arena,
    pub rows: Rows,
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

impl DeviceKey {
    /// Puts a circuit on a device: allocates all that the plan says, loads the points, copies the matrices, computes
    /// tables. Waits until it is done; minutes for 32 GiB.
    ///
    /// # Errors
    /// [`LoadError::File`] about the parameter file; [`LoadError::Device`] if the plan is for another circuit, if there is
    /// not the memory that it says, or what the driver reports.
    pub fn new(
        gpu: &Gpu,
        plan: MemoryPlan,
        source: &Source<'_>,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
    ) -> Result<Self, LoadError> {
        let layout = srs::check_layout(source.path)?;
        layout.fits(&r1cs).map_err(|what| gpu.misuse(what))?;
        let load = |mut lists: Vec<load::List<'_>>| {
            let mut buffers = Buffers::new(gpu, LOADING_BYTES)?;
            load::load(source.path, &mut lists, &mut buffers, source.readers, source.checks, source.watch)
        };
        Self::with_points(gpu, plan, &layout, load, host, r1cs)
    }

    /// The same with points from elsewhere: `load` is given the places of the layout's lists that the plan puts on the
    /// device, and fills them.
    ///
    /// # Errors
    /// As [`Self::new`]; what `load` says.
    pub(super) fn with_points(
        gpu: &Gpu,
        plan: MemoryPlan,
        layout: &srs::Layout,
        load: impl FnOnce(Vec<load::List<'_>>) -> Result<(), LoadError>,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
    ) -> Result<Self, LoadError> {
        let (shape, stream) = (plan.shape, Stream::new(gpu)?);
        same_circuit(&shape, &r1cs).map_err(|what| gpu.misuse(what))?;
        let mut kept = Layout::new();
        let h_vector = kept.add(padded_len(shape.log_n));
        let counts = kept.add(3);
        let mut h = Placed::plan(&plan.h, Parts::of_h(&plan.h), &mut kept);
        let all = Bitmap::ones(r1cs.num_aux);
        let density = &r1cs.density;
        let in_b = density.b_inputs.count_ones();
        let mut place = |vector: &Vector, inputs: usize, aux: &Bitmap| {
            Placed::plan(vector, Parts::of_query(vector, inputs, aux), &mut kept)
        };
        let mut witness = [
            place(&plan.l, 0, &all),
            place(&plan.a, r1cs.num_inputs, &density.a_aux),
            place(&plan.b_g1, in_b, &density.b_aux),
        ];
        let mut g2 = plan.b_g2.as_ref().map(|vector| place(vector, in_b, &density.b_aux));

        let [mut rows, mut sum_h, mut sum_witness, mut sum_g2] = [(); 4].map(|()| kept.clone());
        let vectors = Workspace::plan(h_vector, &mut rows, shape.log_n, shape.room.exceptions);
        let row_buffers = Rows::plan_buffers(plan.matrices, &mut rows);
        let msm_h = Msm::new(&stream, plan.h_msm.clone(), &mut sum_h)?;
        h.plan_buffers(&mut sum_h);
        let msm_witness = Msm::new(&stream, plan.witness_msm.clone(), &mut sum_witness)?;
        witness.iter_mut().for_each(|placed| placed.plan_buffers(&mut sum_witness));
        let msm_g2 = match (&plan.g2_msm, &mut g2) {
            (Some(plan), Some(placed)) => {
                let msm = Msm::new(&stream, plan.clone(), &mut sum_g2)?;
                placed.plan_buffers(&mut sum_g2);
                Some(msm)
            }
            _ => None,
        };
        let layout_of_all = rows.overlay(sum_h).overlay(sum_witness).overlay(sum_g2);
        let arena = Arena::new(gpu, &layout_of_all, "the points and the workspace of a circuit")?;

        let placed = [&mut h].into_iter().chain(&mut witness).chain(&mut g2);
        let mut lists = Vec::new();
        for (placed, section) in placed.zip(&layout.sections[1..]) {
            placed.allocate(gpu)?;
            lists.push(placed.list(*section, &arena)?);
        }
        load(lists)?;
        if plan.h.tables > 1 {
            msm_h.fill_tables(&stream, base(&h, 0, &arena))?;
        }

        let inputs: Vec<u32> = (0..r1cs.num_inputs as u32).collect();
        let b_inputs: Vec<u32> = density.b_inputs.iter_ones().map(|i| i as u32).collect();
        let [l, a, b_g1] = witness;
        let queries = vec![
            Queried::new(&stream, l, &[], None)?,
            Queried::new(&stream, a, &inputs, Some(&density.a_aux))?,
            Queried::new(&stream, b_g1, &b_inputs, Some(&density.b_aux))?,
        ];
        let g2 = match (msm_g2, g2) {
            (Some(msm), Some(placed)) => {
                let query = Queried::new(&stream, placed, &b_inputs, Some(&density.b_aux))?;
                Some(Queries::new(msm, vec![query], plan.b_g2.map_or(0, |vector| vector.part)))
            }
            _ => None,
        };
        let engine = Engine {
            conveyor: Conveyor::new(gpu)?,
            arena,
            rows: Rows::new(&stream, &r1cs, plan.matrices, row_buffers)?,
            ntt: Ntt::new(&stream, shape.log_n)?,
            quotient: Quotient::new(&stream, shape.log_n)?,
            vectors,
            counts,
            h,
            msm_h,
            witness: Queries::new(msm_witness, queries, plan.l.part),
            g2,
        };
        let mut layout = Layout::new();
        let staging = Staging::plan(&mut layout, &shape);
        let slots = Slots::new(gpu, plan.config.workers, &staging, &layout)?;
        stream.wait()?;
        Ok(Self { host, r1cs, plan, staging, slots, engine: Mutex::new(engine) })
    }

    /// Where everything is.
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// How a witness' values are divided among the calls of the sums in G1 and of that in G2.
    pub(super) fn bounds(&self, witness: &CompactWitness) -> [Vec<usize>; 2] {
        let g2 = self.plan.b_g2.map(|vector| value_bounds(witness, vector.part));
        [value_bounds(witness, self.plan.l.part), g2.unwrap_or_default()]
    }
}

impl ProvingKey for DeviceKey {
    fn vk(&self) -> &VerifyingKey<Bls12> {
        &self.host.vk
    }

    fn fits(&self, r1cs: &R1cs) -> Result<(), String> {
        same_circuit(&self.plan.shape, r1cs)
    }
}

/// The points of a call of h.
pub(super) fn base<'a>(h: &Placed, call: usize, arena: &'a Arena) -> Base<'a> {
    let numbers = h.numbers(call);
    Base { points: arena.bytes(), first: numbers.start, len: numbers.len() }
}

/// Whether this is the circuit of the plan, as far as numbers tell.
fn same_circuit(shape: &Shape, r1cs: &R1cs) -> Result<(), String> {
    let planned = [shape.inputs, shape.aux, shape.rows];
    let found = [r1cs.num_inputs, r1cs.num_aux, r1cs.num_constraints()];
    match planned == found {
        true => Ok(()),
        false => Err(format!(
            "the parameters are of another circuit: {planned:?} public inputs, auxiliary variables and rows, the partition \
             has {found:?}"
        )),
    }
}

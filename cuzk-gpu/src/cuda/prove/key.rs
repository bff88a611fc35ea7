//! A circuit on a device: its points, its matrices if rows do not come with the witness, and the workspace of its kernel
//! phase, all made once.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicUsize},
    time::Duration,
};

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_synth::{r1cs::R1cs, witness::CompactWitness};

use super::{
    engine::Engine,
    queries::value_bounds,
    slots::Slots,
    tail::{Place, Tail},
};
use crate::{
    cuda::{
        arena::Layout,
        gpu::Gpu,
        load::{self, Buffers, LoadError},
        plan::{BG2, LOADING_BYTES, MemoryPlan, Shape, Staging},
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
    pub(super) tail: Mutex<Tail>,
    /// CPU parts that run now.
    pub(super) finishing: AtomicUsize,
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

impl DeviceKey {
    /// Puts a circuit on a device: allocates all that the plan says, loads the points, copies the matrices if it has any,
    /// computes tables. Waits until it is done; minutes for 32 GiB. A kernel phase may take as long as `watchdog`.
    ///
    /// # Errors
    /// [`LoadError::File`] about the parameter file; [`LoadError::Device`] if the plan is for another circuit, if there is
    /// not the memory that it says, or what the driver reports.
    pub fn new(
        gpu: &Gpu,
        plan: MemoryPlan,
        source: &Source<'_>,
        watchdog: Duration,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
    ) -> Result<Self, LoadError> {
        let layout = srs::check_layout(source.path)?;
        layout.fits(&r1cs).map_err(|what| gpu.misuse(what))?;
        let load = |mut lists: Vec<load::List<'_>>| {
            let mut buffers = Buffers::new(gpu, LOADING_BYTES)?;
            load::load(source.path, &mut lists, &mut buffers, source.readers, source.checks, source.watch)
        };
        Self::with_points(gpu, plan, (&layout, load), watchdog, host, r1cs)
    }

    /// The same with points from elsewhere: `load` is given the places of the layout's lists that the plan puts on the
    /// device, and fills them.
    ///
    /// # Errors
    /// As [`Self::new`]; what `load` says.
    pub(super) fn with_points(
        gpu: &Gpu,
        plan: MemoryPlan,
        (layout, load): (&srs::Layout, impl FnOnce(Vec<load::List<'_>>) -> Result<(), LoadError>),
        watchdog: Duration,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
    ) -> Result<Self, LoadError> {
        let (shape, stream) = (plan.shape, Stream::new(gpu)?);
        same_circuit(&shape, &r1cs).map_err(|what| gpu.misuse(what))?;
        let mut worker = Layout::new();
        let staging = Staging::plan(&mut worker, &shape, plan.config.rows);
        let engine = Engine::new(&stream, (&plan, &staging), layout, load, &r1cs)?;
        let slots = Slots::new(gpu, plan.config.workers, watchdog, &staging, &worker)?;
        stream.wait()?;
        let tail = Mutex::new(Tail::new(plan.config.workers));
        let (engine, finishing) = (Mutex::new(engine), AtomicUsize::new(0));
        Ok(Self { host, r1cs, plan, staging, tail, finishing, slots, engine })
    }

    /// Where everything is.
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// Where the sum over b_g2 of the next partition is computed.
    pub(super) fn place_of_b_g2(&self) -> Place {
        match (&self.plan.b_g2, self.plan.config.b_g2) {
            (None, _) => Place::Cpu,
            (Some(_), BG2::Auto) => self.tail.lock().unwrap_or_else(PoisonError::into_inner).choose(),
            (Some(_), _) => Place::Device,
        }
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

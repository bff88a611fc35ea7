//! A circuit on a device: its matrices and points, and the workspace of its kernel phase, all made once.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
};

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_synth::{bitmap::Bitmap, r1cs::R1cs};

use super::{slots::Slots, staging::Staging};
use crate::{
    arith::{G1, Table},
    cuda::{
        arena::{Arena, Layout},
        error::CudaError,
        gpu::Gpu,
        memory::DeviceBuffer,
        msm::{Base, Msm, Query},
        ntt::{Ntt, Quotient, plan::padded_len, quotient::Workspace},
        plan::{Matrices, MemoryPlan, Shape, Vector},
        spmv::{DeviceMatrix, Spmv, matrix::Coefficients},
        stream::Stream,
    },
    prover::ProvingKey,
    srs::Srs,
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

/// Points of a circuit in device memory, in the form of the kernels.
pub struct DevicePoints {
    /// Of h, with room for tables of multiples.
    pub h: DeviceBuffer<u8>,
    /// Of l, a and b_g1, one after the other.
    pub witness: DeviceBuffer<u8>,
}

/// The kernel phase's own: points, matrices, plans and the workspace.
pub(super) struct Engine {
    pub arena: Arena,
    pub spmv: Spmv,
    pub matrices: [DeviceMatrix; 2],
    pub coefficients: Coefficients,
    pub ntt: Ntt,
    pub quotient: Quotient,
    pub vectors: Workspace,
    pub points: DevicePoints,
    pub variables: [Variables; 3],
    pub msm_h: Msm<G1>,
    pub msm_witness: Msm<G1>,
}

/// The variables that one of the queries l, a, b_g1 has points for.
pub(super) struct Variables {
    points: Range<usize>,
    inputs: DeviceBuffer<u32>,
    /// `None` where all occur.
    aux: Option<DeviceBuffer<u32>>,
}

impl DeviceKey {
    /// Puts a circuit on a device, whose points are there already: copies the matrices, computes tables, allocates the
    /// workspace. Waits until it is done.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the plan streams anything, or is for other points or another circuit,
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(
        gpu: &Gpu,
        plan: MemoryPlan,
        points: DevicePoints,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
    ) -> Result<Self, CudaError> {
        let (shape, stream) = (plan.shape, Stream::new(gpu)?);
        same_circuit(&shape, &r1cs).map_err(|what| gpu.misuse(what))?;
        points.fit(gpu, &plan)?;
        let mut layout = Layout::new();
        let h = layout.add(padded_len(shape.log_n));
        let [mut rows, mut sum_h, mut sum_witness] = [(); 3].map(|()| layout.clone());
        let vectors = Workspace::plan(h, &mut rows, shape.log_n, shape.room.exceptions);
        let msm_h = Msm::new(&stream, plan.h_msm.clone(), &mut sum_h)?;
        let msm_witness = Msm::new(&stream, plan.witness_msm.clone(), &mut sum_witness)?;
        let base = Base { points: points.h.all(), first: 0, len: plan.h.points };
        msm_h.fill_tables(&stream, base)?;
        let arena = Arena::new(gpu, &rows.overlay(sum_h).overlay(sum_witness), "the workspace of a circuit")?;
        let engine = Engine {
            arena,
            spmv: Spmv::new(&stream)?,
            matrices: [DeviceMatrix::new(&stream, &r1cs, &r1cs.a)?, DeviceMatrix::new(&stream, &r1cs, &r1cs.b)?],
            coefficients: Coefficients::new(&stream, &r1cs)?,
            ntt: Ntt::new(&stream, shape.log_n)?,
            quotient: Quotient::new(&stream, shape.log_n)?,
            vectors,
            points,
            variables: variables(&stream, &r1cs, &plan)?,
            msm_h,
            msm_witness,
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
}

impl ProvingKey for DeviceKey {
    fn vk(&self) -> &VerifyingKey<Bls12> {
        &self.host.vk
    }

    fn fits(&self, r1cs: &R1cs) -> Result<(), String> {
        same_circuit(&self.plan.shape, r1cs)
    }
}

impl Variables {
    /// As sums take them.
    pub(super) fn query(&self) -> Query<'_> {
        let aux = self.aux.as_ref().map(DeviceBuffer::all);
        Query { first: self.points.start, len: self.points.len(), inputs: self.inputs.all(), mask: aux }
    }
}

impl DevicePoints {
    /// Copies points of h, l, a and b_g1 in the portable form to where a plan wants them.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if they are others, [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn upload(stream: &Stream, plan: &MemoryPlan, points: [&Table<G1>; 4]) -> Result<Self, CudaError> {
        let [h, witness @ ..] = points;
        let copy = |lists: &[&Table<G1>], tables: usize| {
            let bytes: usize = lists.iter().map(|list| list.as_bytes().len()).sum();
            let buffer = DeviceBuffer::new(stream.gpu(), tables * bytes, "points")?;
            let mut begin = 0;
            for list in lists {
                let Table::Portable(_) = list else {
                    let what = format!("{} points in the form of another arithmetic", list.len());
                    return Err(stream.gpu().misuse(what));
                };
                let bytes = list.as_bytes();
                buffer.all().range(begin..begin + bytes.len())?.upload(stream, bytes)?;
                begin += bytes.len();
            }
            Ok(buffer)
        };
        Ok(Self { h: copy(&[h], plan.h.tables)?, witness: copy(&witness, 1)? })
    }

    /// Whether they are those of a plan that streams nothing.
    fn fit(&self, gpu: &Gpu, plan: &MemoryPlan) -> Result<(), CudaError> {
        let resident = plan.vectors().all(Vector::is_resident) && plan.matrices == Matrices::Resident;
        let wanted = [plan.h.device_bytes(), [&plan.l, &plan.a, &plan.b_g1].map(Vector::device_bytes).iter().sum()];
        let found = [self.h.len(), self.witness.len()];
        match resident && plan.b_g2.is_none() && wanted == found {
            true => Ok(()),
            false => Err(gpu.misuse(format!("{found:?} bytes of points, the plan wants {wanted:?}:\n{plan}"))),
        }
    }
}

/// Of l, a and b_g1.
fn variables(stream: &Stream, r1cs: &R1cs, plan: &MemoryPlan) -> Result<[Variables; 3], CudaError> {
    let density = &r1cs.density;
    let [l, a, b] = [&plan.l, &plan.a, &plan.b_g1].map(|vector| vector.points);
    let all = (0..r1cs.num_inputs as u32).collect();
    let in_b = density.b_inputs.iter_ones().map(|i| i as u32).collect();
    let one = |points, inputs: Vec<u32>, aux: Option<&Bitmap>| {
        let inputs = DeviceBuffer::from_host(stream, &inputs, "a query's public inputs")?;
        let aux = aux.map_or(Ok(None), |aux| mask(stream, aux))?;
        Ok::<_, CudaError>(Variables { points, inputs, aux })
    };
    Ok([
        one(0..l, vec![], None)?,
        one(l..l + a, all, Some(&density.a_aux))?,
        one(l + a..l + a + b, in_b, Some(&density.b_aux))?,
    ])
}

fn mask(stream: &Stream, bitmap: &Bitmap) -> Result<Option<DeviceBuffer<u32>>, CudaError> {
    if bitmap.count_ones() == bitmap.len() {
        return Ok(None);
    }
    let words: Vec<u32> = bitmap.words().iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
    DeviceBuffer::from_host(stream, &words, "a query's variables").map(Some)
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

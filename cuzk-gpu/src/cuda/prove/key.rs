//! A circuit on a device: its matrices and points, and the workspace of its kernel phase, all made once.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
};

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_synth::{bitmap::Bitmap, r1cs::R1cs};

use super::{shape::Shape, slots::Slots, staging::Staging};
use crate::{
    arith::{G1, Table},
    cuda::{
        arena::{Arena, Layout},
        error::CudaError,
        gpu::Gpu,
        memory::DeviceBuffer,
        msm::{Base, Msm, Plan, Query, Request},
        ntt::{Ntt, Quotient, quotient::Workspace},
        spmv::{DeviceMatrix, Spmv, matrix::Coefficients},
        stream::Stream,
    },
    prover::ProvingKey,
    srs::HostKey,
};

/// How a circuit is put on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Partitions that may be on the device at once, all but one of them waiting.
    pub workers: usize,
    /// Bytes of device memory that may be used.
    pub memory: usize,
    /// The most tables of multiples of h.
    pub tables: usize,
}

/// A circuit on a device.
pub struct DeviceKey {
    pub(super) host: Arc<HostKey>,
    pub(super) r1cs: Arc<R1cs>,
    shape: Shape,
    tables: usize,
    pub(super) staging: Staging,
    pub(super) slots: Arc<Slots>,
    /// Only who holds the device's lock takes it.
    pub(super) engine: Mutex<Engine>,
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
    pub h: DeviceBuffer<u8>,
    /// l, a, b_g1, one after the other.
    pub points: DeviceBuffer<u8>,
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
    /// Puts a circuit on a device: copies everything, computes tables, allocates the workspace. Waits until it is done.
    /// `points` are h, l, a and b_g1, in the portable form.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if parameters and circuit do not fit each other or the memory,
    /// [`CudaError::OutOfMemory`], or what the driver reports.
    pub fn new(
        gpu: &Gpu,
        points: &[Table<G1>; 4],
        host: Arc<HostKey>,
        r1cs: Arc<R1cs>,
        options: Options,
    ) -> Result<Self, CudaError> {
        let (shape, stream) = (Shape::of(&r1cs), Stream::new(gpu)?);
        let lengths = points.each_ref().map(Table::len);
        if lengths != shape.points {
            return Err(
                gpu.misuse(format!("{lengths:?} points of h, l, a, b_g1 for a circuit with {:?}", shape.points))
            );
        }
        let sms = gpu.info().sms as usize;
        let Some(tables) = shape.tables(options.tables, sms, options.workers, options.memory) else {
            let what = format!("{} bytes of device memory are not enough for {shape:?}", options.memory);
            return Err(gpu.misuse(what));
        };
        let plan = |request: Request| {
            let what = format!("no plan for {request:?}");
            Plan::choose(request).ok_or_else(|| gpu.misuse(what))
        };
        let plan_h = plan(shape.h_request(tables, sms, usize::MAX))?;

        let [h, queries @ ..] = points;
        let h = upload(&stream, &[h], plan_h.windows.tables())?;
        let variables = variables(&stream, &r1cs, shape.points)?;
        let mut layout = Layout::new();
        let vectors = Workspace::plan(&mut layout, shape.log_n, shape.exceptions);
        let (mut of_h, mut of_witness) = (layout.clone(), layout);
        let msm_h = Msm::new(&stream, plan_h, &mut of_h)?;
        let msm_witness = Msm::new(&stream, plan(shape.witness_request(sms, usize::MAX))?, &mut of_witness)?;
        msm_h.fill_tables(&stream, Base { points: h.all(), first: 0, len: shape.points[0] })?;

        let tables = msm_h.plan().windows.tables();
        let engine = Engine {
            arena: Arena::new(gpu, &of_h.overlay(of_witness), "the workspace of a circuit")?,
            spmv: Spmv::new(&stream)?,
            matrices: [DeviceMatrix::new(&stream, &r1cs, &r1cs.a)?, DeviceMatrix::new(&stream, &r1cs, &r1cs.b)?],
            coefficients: Coefficients::new(&stream, &r1cs)?,
            ntt: Ntt::new(&stream, shape.log_n)?,
            quotient: Quotient::new(&stream, shape.log_n)?,
            vectors,
            h,
            points: upload(&stream, &queries.each_ref(), 1)?,
            variables,
            msm_h,
            msm_witness,
        };
        let mut layout = Layout::new();
        let staging = Staging::plan(&mut layout, &shape);
        let slots = Slots::new(gpu, options.workers, &staging, &layout)?;
        stream.wait()?;
        Ok(Self { host, r1cs, shape, tables, staging, slots, engine: Mutex::new(engine) })
    }

    /// Its numbers.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Tables of multiples of h.
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// What stays with the host.
    pub fn host(&self) -> &HostKey {
        &self.host
    }
}

impl ProvingKey for DeviceKey {
    fn vk(&self) -> &VerifyingKey<Bls12> {
        &self.host.vk
    }

    fn fits(&self, r1cs: &R1cs) -> Result<(), String> {
        self.shape.fits(r1cs)
    }
}

impl Variables {
    /// As sums take them.
    pub(super) fn query(&self) -> Query<'_> {
        let aux = self.aux.as_ref().map(DeviceBuffer::all);
        Query { first: self.points.start, len: self.points.len(), inputs: self.inputs.all(), mask: aux }
    }
}

/// Copies lists of points, one after the other, with room for tables of their multiples.
fn upload(stream: &Stream, lists: &[&Table<G1>], tables: usize) -> Result<DeviceBuffer<u8>, CudaError> {
    let gpu = stream.gpu();
    let bytes: usize = lists.iter().map(|list| list.as_bytes().len()).sum();
    let buffer = DeviceBuffer::new(gpu, tables * bytes, "points")?;
    let mut begin = 0;
    for list in lists {
        let Table::Portable(_) = list else {
            return Err(gpu.misuse(format!("{} points in the form of another arithmetic", list.len())));
        };
        let bytes = list.as_bytes();
        buffer.all().range(begin..begin + bytes.len())?.upload(stream, bytes)?;
        begin += bytes.len();
    }
    Ok(buffer)
}

/// Of l, a and b_g1.
fn variables(stream: &Stream, r1cs: &R1cs, [_, l, a, b]: [usize; 4]) -> Result<[Variables; 3], CudaError> {
    let density = &r1cs.density;
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

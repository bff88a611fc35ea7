//! A circuit on a device: its matrices and points, and the workspace of its kernel phase, all made once.

use std::sync::{Arc, Mutex};

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_synth::{bitmap::Bitmap, r1cs::R1cs};

use super::{shape::Shape, slots::Slots, staging::Staging};
use crate::{
    arith::{G1, Table},
    cuda::{
        arena::{Arena, Layout, Region},
        error::CudaError,
        fr::Element,
        gpu::Gpu,
        memory::DeviceBuffer,
        msm::{Base, Msm, Plan},
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
    /// Values of B's public inputs, then all full values.
    pub b_values: Region<Element>,
    /// Variables that occur in A and in B; `None` where all do.
    pub masks: [Option<DeviceBuffer<u32>>; 2],
    pub h: Points,
    /// l, a, b_g1.
    pub queries: [Points; 3],
    pub msm_h: Msm<G1>,
    pub msm_witness: Msm<G1>,
}

/// A query's points.
pub(super) struct Points {
    buffer: DeviceBuffer<u8>,
    len: usize,
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
        let plan = |request| Plan::choose(request).ok_or_else(|| gpu.misuse(format!("no plan for {request:?}")));
        let plan_h = plan(shape.h_request(tables, sms, usize::MAX))?;

        let [h, l, a, b_g1] = points;
        let h = Points::upload(&stream, h, plan_h.windows.tables())?;
        let [l, a, b_g1] = [l, a, b_g1].map(|points| Points::upload(&stream, points, 1));
        let mut layout = Layout::new();
        let vectors = Workspace::plan(&mut layout, shape.log_n, shape.exceptions);
        let b_values = layout.add(shape.b_inputs + shape.values);
        let (mut of_h, mut of_witness) = (layout.clone(), layout);
        let msm_h = Msm::new(&stream, plan_h, &mut of_h)?;
        let msm_witness = Msm::new(&stream, plan(shape.witness_request(sms, usize::MAX))?, &mut of_witness)?;
        msm_h.fill_tables(&stream, h.base())?;

        let tables = msm_h.plan().windows.tables();
        let engine = Engine {
            arena: Arena::new(gpu, &of_h.overlay(of_witness), "the workspace of a circuit")?,
            spmv: Spmv::new(&stream)?,
            matrices: [DeviceMatrix::new(&stream, &r1cs, &r1cs.a)?, DeviceMatrix::new(&stream, &r1cs, &r1cs.b)?],
            coefficients: Coefficients::new(&stream, &r1cs)?,
            ntt: Ntt::new(&stream, shape.log_n)?,
            quotient: Quotient::new(&stream, shape.log_n)?,
            vectors,
            b_values,
            masks: [mask(&stream, &r1cs.density.a_aux)?, mask(&stream, &r1cs.density.b_aux)?],
            h,
            queries: [l?, a?, b_g1?],
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

impl Points {
    /// Copies points, with room for tables of their multiples.
    fn upload(stream: &Stream, points: &Table<G1>, tables: usize) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        let Table::Portable(_) = points else {
            return Err(gpu.misuse(format!("{} points in the form of another arithmetic", points.len())));
        };
        let bytes = points.as_bytes();
        let buffer = DeviceBuffer::new(gpu, tables * bytes.len(), "points")?;
        buffer.all().range(..bytes.len())?.upload(stream, bytes)?;
        Ok(Self { buffer, len: points.len() })
    }

    /// As sums take them.
    pub(super) fn base(&self) -> Base<'_> {
        Base { points: self.buffer.all(), len: self.len }
    }
}

fn mask(stream: &Stream, bitmap: &Bitmap) -> Result<Option<DeviceBuffer<u32>>, CudaError> {
    if bitmap.count_ones() == bitmap.len() {
        return Ok(None);
    }
    let words: Vec<u32> = bitmap.words().iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
    DeviceBuffer::from_host(stream, &words, "a query's variables").map(Some)
}

//! A device as a backend of proofs.

use std::{
    sync::{PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use blstrs::G2Projective;

use super::{key::DeviceKey, run::Left, slots::Lent, staging, tail::Place};
use crate::{
    cpu::{Pools, selection::Selection},
    cuda::{driver::DeviceInfo, error::CudaError, gpu::Gpu},
    prover::{Backend, DeviceError, Fault, KernelSums, Partition, ProveError},
    timing::{Phase, Timings},
};

/// A device.
#[derive(Debug)]
pub struct Cuda {
    gpu: Gpu,
    pools: Option<Pools>,
}

/// A partition on its way: its witness is in a worker's device memory, or will be when the worker's stream gets there.
pub struct Staged {
    slot: Lent,
    b: Option<Selection>,
}

/// What the kernels leave.
pub struct Rest {
    left: Left,
    /// How long the kernel phase took.
    hold: Duration,
    /// The witness, as the query b_g2 sees it, if that sum is the CPU's.
    b: Option<Selection>,
}

impl Rest {
    /// The sums in G1.
    pub(super) fn sums(&self) -> KernelSums {
        self.left.fold().0
    }
}

impl Cuda {
    /// An opened device. What the CPU does before and after the kernels runs on the threads of `pools`, without them on
    /// the caller's current ones.
    pub fn new(gpu: Gpu, pools: Option<Pools>) -> Self {
        Self { gpu, pools }
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn failed(&self, error: CudaError) -> ProveError {
        error.of_device(self.name())
    }
}

impl Backend for Cuda {
    type Key = DeviceKey;
    type Staged = Staged;
    type Rest = Rest;

    fn name(&self) -> &str {
        let DeviceInfo { uuid, .. } = self.gpu.info();
        uuid
    }

    fn stage(&self, key: &DeviceKey, partition: &Partition) -> Result<Staged, ProveError> {
        let witness = &partition.witness;
        let density = &key.r1cs.density;
        let Some(mut slot) = key.slots.take() else {
            let (device, what) = (self.name().to_owned(), format!("{}: its context is lost", self.gpu.label()));
            return Err(DeviceError { device, fault: Fault::Context, what }.into());
        };
        slot.b_g2 = key.place_of_b_g2();
        slot.bounds = key.bounds(witness);
        slot.marks.clear();
        let of_b = || {
            let inputs: Vec<_> = density.b_inputs.iter_ones().map(|i| witness.inputs()[i]).collect();
            Selection::new(&inputs, witness, Some(&density.b_aux))
        };
        let place = slot.b_g2;
        let write = || staging::write(&key.staging, &mut slot.host, witness, partition.rows.as_ref());
        let (written, b) = Pools::on(
            self.pools.as_ref(),
            |pools| &pools.kernels,
            || rayon::join(write, || (place == Place::Cpu).then(of_b)),
        );
        let used = written.map_err(|what| self.failed(self.gpu.misuse(what)))?;
        let upload = |slot: &mut Lent| {
            let slot = &mut **slot;
            slot.marks.mark(&slot.stream, None)?;
            for bytes in used {
                let to = slot.arena.bytes().range(bytes.clone())?;
                // SAFETY: the pinned buffer is the slot's, and is written again only when the slot is taken again, before
                // which its stream was waited for.
                unsafe { to.upload_async(&slot.stream, &slot.host[bytes])? };
            }
            slot.marks.mark(&slot.stream, Some(Phase::Upload))
        };
        upload(&mut slot).map_err(|error| self.failed(error))?;
        Ok(Staged { slot, b })
    }

    fn kernels(
        &self,
        key: &DeviceKey,
        Staged { mut slot, b }: Staged,
        timings: &mut Timings,
    ) -> Result<Rest, ProveError> {
        let mut engine = key.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        let mut run = || {
            engine.run(&mut slot, &key.staging)?;
            slot.marks.read(Instant::now(), timings)?;
            engine.left(slot.b_g2)
        };
        let result = run();
        if matches!(result, Err(CudaError::TooSlow { .. })) {
            slot.set_stuck();
        }
        result.map(|left| Rest { left, hold: begin.elapsed(), b }).map_err(|error| self.failed(error))
    }

    fn finish(&self, key: &DeviceKey, Rest { left, hold, b }: Rest) -> Result<(KernelSums, G2Projective), ProveError> {
        let points = &key.host.b_g2;
        let (begin, at_once) = (Instant::now(), 1 + key.finishing.fetch_add(1, Ordering::Relaxed));
        let of_cpu = || {
            let b = b.as_ref()?;
            points.will_need();
            let sum = b.sum(points);
            points.release();
            Some(sum)
        };
        let ((sums, of_device), of_cpu) =
            Pools::on(self.pools.as_ref(), |pools| &pools.finish, || rayon::join(|| left.fold(), of_cpu));
        key.finishing.fetch_sub(1, Ordering::Relaxed);
        let mut tail = key.tail.lock().unwrap_or_else(PoisonError::into_inner);
        match b {
            Some(_) => tail.note_cpu(hold, begin.elapsed(), at_once),
            None => tail.note_device(hold),
        }
        drop(tail);
        let sum = of_device.or(of_cpu).expect("staging leaves b to the device only if the device sums it up");
        Ok((sums, sum))
    }
}

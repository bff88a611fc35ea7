//! All devices of this process, and the circuits that they have prepared: opened at the start, closed and opened again when
//! one needs a new context.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_synth::r1cs::R1cs;

use super::{Circuit, Cuda, DeviceKey, Source};
use crate::{
    cpu::Pools,
    cuda::{
        driver::DeviceInfo,
        error::CudaError,
        gpu::{Gpu, WeakGpu},
        kernels::Kernels,
        load::LoadError,
        plan::{BG2, Card, Config, MemoryPlan, NoPlan, Room, Rows, Shape},
        points::Checks,
    },
    device::Device,
    prover::{Blinding, DeviceError, Fault, Partition, ProveError},
    shelf::{Budget, Footprint, Lease, Needs, NoRoom, Shelf},
    srs::{Srs, Watch},
    timing::Timings,
};

/// The devices.
#[derive(Debug)]
pub struct Devices {
    slots: Arc<Vec<Slot>>,
    options: DeviceOptions,
    /// Circuits so far.
    circuits: AtomicUsize,
}

/// How devices are used.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Partitions that may be on a device at once.
    pub workers: usize,
    /// The most bytes of device memory to use.
    pub vram_limit: Option<usize>,
    /// Bytes of device memory that are left alone.
    pub vram_reserve: usize,
    /// The most bytes of page-locked host memory to use.
    pub pinned_limit: usize,
    /// Where the sum over b_g2 is computed.
    pub b_g2: BG2,
    /// What is checked of the points of parameter files.
    pub checks: Checks,
    /// Threads that read parameter files.
    pub readers: usize,
    /// How long a kernel phase may take before the device counts as stuck.
    pub watchdog: Duration,
    /// Threads of what the CPU does before and after the kernels; without them, the caller's.
    pub pools: Option<Pools>,
}

#[derive(Debug)]
pub(super) struct Slot {
    info: DeviceInfo,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Opened),
    /// To be opened again when nobody uses the old context any more.
    Closing(WeakGpu),
}

/// A device with a context, and the circuits on it.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    device: Arc<Device<Cuda>>,
    /// What was free when it was opened.
    card: Card,
    pub shelf: Shelf<usize, DeviceKey>,
    /// Of each circuit, made when it first came.
    pub plans: Arc<Mutex<BTreeMap<usize, MemoryPlan>>>,
}

impl Devices {
    /// Opens devices. Their kernels come from where [`Kernels::from_environment`] says.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn open(infos: Vec<DeviceInfo>, options: DeviceOptions) -> Result<Self, CudaError> {
        let open = |info: DeviceInfo| {
            let device = open(&info, &options)?;
            Ok(Slot { info, state: Mutex::new(State::Open(device)) })
        };
        let slots = infos.into_iter().map(open).collect::<Result<_, CudaError>>()?;
        Ok(Self { slots: Arc::new(slots), options, circuits: AtomicUsize::new(0) })
    }

    /// No device at all.
    pub fn none(options: DeviceOptions) -> Self {
        Self { slots: Arc::default(), options, circuits: AtomicUsize::new(0) }
    }

    /// What the driver says about each.
    pub fn infos(&self) -> impl ExactSizeIterator<Item = &DeviceInfo> {
        self.slots.iter().map(|slot| &slot.info)
    }

    /// Bytes of a device's memory that nobody uses; `None` if it does not answer.
    pub fn free_memory(&self, device: usize) -> Option<usize> {
        self.device(device).ok()?.backend().gpu().free_memory().ok()
    }

    /// A device as it is now.
    ///
    /// # Errors
    /// It has no context.
    pub fn device(&self, device: usize) -> Result<Arc<Device<Cuda>>, ProveError> {
        self.opened(device).map(|opened| opened.device)
    }

    fn opened(&self, device: usize) -> Result<Opened, ProveError> {
        match &*lock(&self.slots[device].state) {
            State::Open(opened) => Ok(opened.clone()),
            State::Closing(_) => Err(self.gone(device, "it has no context".to_owned())),
        }
    }

    /// Prepares a circuit on every device, with the points of a parameter file, for partitions whose A·w and B·w come as
    /// `rows` says: a partition without them is refused by a device that has no matrices.
    ///
    /// # Errors
    /// The file cannot be read or has a bad point, `watch` stopped it, or a device cannot take the circuit.
    pub fn load(
        &self,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
        rows: Rows,
        params: PathBuf,
        watch: &Watch<'_>,
    ) -> Result<Arc<Circuit>, String> {
        let number = self.circuits.fetch_add(1, Ordering::Relaxed);
        let circuit = Arc::new(Circuit { number, host, r1cs, rows, params, slots: Arc::downgrade(&self.slots) });
        for device in 0..self.slots.len() {
            let opened = self.opened(device).map_err(|e| e.to_string())?;
            self.lease(&opened, &circuit, watch).map_err(|e| e.to_string())?;
        }
        Ok(circuit)
    }

    /// Page-locked host memory that circuits on devices hold, and the most that they may, in bytes.
    pub fn pinned_in_use(&self) -> (u64, u64) {
        let opened = opened(&self.slots);
        let limit = if opened.is_empty() { 0 } else { self.options.pinned_limit as u64 };
        (opened.iter().map(|opened| opened.shelf.used().host).sum(), limit)
    }

    /// Page-locked host memory that a circuit of this shape would take on all devices together, in bytes.
    pub fn pinned_bytes(&self, shape: &Shape, rows: Rows) -> u64 {
        let config = self.options.config(rows);
        let of_device =
            |opened: Opened| MemoryPlan::choose(shape, &opened.card, &config).ok().map(|p| p.pinned_bytes());
        opened(&self.slots).into_iter().filter_map(of_device).sum::<usize>() as u64
    }

    /// Proves a partition on a device. The circuit is prepared first if it is not, as after a new context.
    ///
    /// # Errors
    /// As [`Device::prove`].
    pub fn prove(
        &self,
        device: usize,
        circuit: &Circuit,
        partition: &Partition,
        blinding: Blinding,
    ) -> Result<(Proof<Bls12>, Timings), ProveError> {
        let opened = self.opened(device)?;
        let key = self.lease(&opened, circuit, &Watch::nobody())?;
        opened.device.prove(&key, partition, blinding)
    }

    /// Gives a device a new context: all that is on it is dropped.
    ///
    /// # Errors
    /// Somebody still works with the old one, or the driver's report.
    pub fn revive(&self, device: usize) -> Result<(), ProveError> {
        let slot = &self.slots[device];
        let old = {
            let mut state = lock(&slot.state);
            let old = match &*state {
                State::Open(opened) => opened.device.backend().gpu().downgrade(),
                State::Closing(old) => old.clone(),
            };
            *state = State::Closing(old.clone());
            old
        };
        // A context lives as long as somebody uses it, and until then a new one would be the same.
        if old.is_in_use() {
            return Err(self.gone(device, "its old context is still in use".to_owned()));
        }
        let new = open(&slot.info, &self.options).map_err(|error| error.of_device(&slot.info.uuid))?;
        *lock(&slot.state) = State::Open(new);
        Ok(())
    }

    /// A circuit on a device, put there now if it is not. Circuits that nobody uses make room for it.
    fn lease(
        &self,
        opened: &Opened,
        circuit: &Circuit,
        watch: &Watch<'_>,
    ) -> Result<Lease<usize, DeviceKey>, ProveError> {
        let gpu = opened.device.backend().gpu();
        let failed = |error: CudaError| error.of_device(&gpu.info().uuid);
        let plan = self.plan(opened, circuit).map_err(|error| failed(gpu.misuse(error.to_string())))?;
        let hot = Footprint { device: plan.device_bytes() as u64, host: plan.pinned_bytes() as u64 };
        let needs = Needs { warm: Footprint::default(), hot };
        let DeviceOptions { checks, readers, watchdog, .. } = self.options;
        let lease = opened.shelf.lease(circuit.number, needs, || {
            tracing::info!("{}:\n{plan}", gpu.label());
            let source = Source { path: &circuit.params, checks, readers, watch };
            let (host, r1cs) = (circuit.host.clone(), circuit.r1cs.clone());
            let key = DeviceKey::new(gpu, plan.clone(), &source, watchdog, host, r1cs);
            key.map_err(|error| match error {
                LoadError::Device(error) => Unloaded::Failed(failed(error)),
                LoadError::File(error) => Unloaded::Failed(ProveError::Input(error.to_string())),
            })
        });
        lease.map_err(|error| match error {
            Unloaded::Failed(error) => error,
            Unloaded::NoRoom(error) => failed(gpu.misuse(error.to_string())),
        })
    }

    fn plan(&self, opened: &Opened, circuit: &Circuit) -> Result<MemoryPlan, NoPlan> {
        if let Some(plan) = lock(&opened.plans).get(&circuit.number) {
            return Ok(plan.clone());
        }
        let r1cs = &circuit.r1cs;
        let shape = Shape::of(r1cs, Room::for_bits(r1cs.num_variables(), r1cs.num_constraints()));
        let plan = MemoryPlan::choose(&shape, &opened.card, &self.options.config(circuit.rows))?;
        lock(&opened.plans).insert(circuit.number, plan.clone());
        Ok(plan)
    }

    fn gone(&self, device: usize, what: String) -> ProveError {
        let info = &self.slots[device].info;
        DeviceError { device: info.uuid.clone(), fault: Fault::Gone, what: format!("{info}: {what}") }.into()
    }
}

/// Why a circuit is not on a device.
enum Unloaded {
    NoRoom(NoRoom<usize>),
    Failed(ProveError),
}

impl From<NoRoom<usize>> for Unloaded {
    fn from(error: NoRoom<usize>) -> Self {
        Self::NoRoom(error)
    }
}

impl DeviceOptions {
    fn config(&self, rows: Rows) -> Config {
        Config {
            vram_limit: self.vram_limit,
            reserve: self.vram_reserve,
            workers: self.workers,
            b_g2: self.b_g2,
            rows,
            pinned_limit: self.pinned_limit,
        }
    }
}

/// The devices that have a context.
pub(super) fn opened(slots: &[Slot]) -> Vec<Opened> {
    let opened = |slot: &Slot| match &*lock(&slot.state) {
        State::Open(opened) => Some(opened.clone()),
        State::Closing(_) => None,
    };
    slots.iter().filter_map(opened).collect()
}

fn open(info: &DeviceInfo, options: &DeviceOptions) -> Result<Opened, CudaError> {
    let gpu = Gpu::open(info.clone(), Kernels::from_environment())?;
    let card = Card::new(info, gpu.free_memory()?);
    let most = options.vram_limit.map_or(card.memory, |limit| limit.min(card.memory));
    let budget =
        Footprint { device: most.saturating_sub(options.vram_reserve) as u64, host: options.pinned_limit as u64 };
    let device = Arc::new(Device::new(Cuda::new(gpu, options.pools.clone())));
    Ok(Opened { device, card, shelf: Shelf::new(Budget(budget)), plans: Arc::default() })
}

/// Poison is ignored: what the mutexes here guard is replaced whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

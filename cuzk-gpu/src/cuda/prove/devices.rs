//! All devices of this process, and the circuits that they have prepared: opened at the start, closed and opened again when
//! one needs a new context.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_synth::r1cs::R1cs;
use rayon::ThreadPool;

use super::{Cuda, DeviceKey, Source};
use crate::{
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
    shelf::{Budget, Footprint, Lease, Needs, NoRoom, Shelf, Tier},
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
    /// Threads of what the CPU does after the kernels; without them, the caller's.
    pub finish: Option<Arc<ThreadPool>>,
}

#[derive(Debug)]
struct Slot {
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
struct Opened {
    device: Arc<Device<Cuda>>,
    /// What was free when it was opened.
    card: Card,
    shelf: Shelf<usize, DeviceKey>,
    /// Of each circuit, made when it first came.
    plans: Arc<Mutex<BTreeMap<usize, MemoryPlan>>>,
}

/// A circuit that devices can prove. When it is dropped, it leaves the devices.
pub struct Circuit {
    number: usize,
    host: Arc<Srs>,
    r1cs: Arc<R1cs>,
    /// Its parameter file.
    params: PathBuf,
    slots: Weak<Vec<Slot>>,
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

    /// Prepares a circuit on every device, with the points of a parameter file.
    ///
    /// # Errors
    /// The file cannot be read or has a bad point, `watch` stopped it, or a device cannot take the circuit.
    pub fn load(
        &self,
        host: Arc<Srs>,
        r1cs: Arc<R1cs>,
        params: PathBuf,
        watch: &Watch<'_>,
    ) -> Result<Arc<Circuit>, String> {
        let number = self.circuits.fetch_add(1, Ordering::Relaxed);
        let circuit = Arc::new(Circuit { number, host, r1cs, params, slots: Arc::downgrade(&self.slots) });
        for device in 0..self.slots.len() {
            let opened = self.opened(device).map_err(|e| e.to_string())?;
            self.lease(&opened, &circuit, watch).map_err(|e| e.to_string())?;
        }
        Ok(circuit)
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
        let DeviceOptions { checks, readers, .. } = self.options;
        let lease = opened.shelf.lease(circuit.number, needs, || {
            tracing::info!("{}:\n{plan}", gpu.label());
            let source = Source { path: &circuit.params, checks, readers, watch };
            let key = DeviceKey::new(gpu, plan.clone(), &source, circuit.host.clone(), circuit.r1cs.clone());
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
        let plan = MemoryPlan::choose(&shape, &opened.card, &self.options.config())?;
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
    fn config(&self) -> Config {
        Config {
            vram_limit: self.vram_limit,
            reserve: self.vram_reserve,
            workers: self.workers,
            b_g2: self.b_g2,
            rows: Rows::Matrices,
            pinned_limit: self.pinned_limit,
        }
    }
}

impl Circuit {
    /// Whether a device has it.
    pub fn is_on_a_device(&self) -> bool {
        self.opened().iter().any(|opened| opened.shelf.tier(self.number) == Tier::Hot)
    }

    /// The devices that have a context.
    fn opened(&self) -> Vec<Opened> {
        let slots = self.slots.upgrade();
        let slots = slots.iter().flat_map(|slots| slots.iter());
        let opened = |slot: &Slot| match &*lock(&slot.state) {
            State::Open(opened) => Some(opened.clone()),
            State::Closing(_) => None,
        };
        slots.filter_map(opened).collect()
    }
}

impl Drop for Circuit {
    fn drop(&mut self) {
        for opened in self.opened() {
            opened.shelf.evict(self.number);
            lock(&opened.plans).remove(&self.number);
        }
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Circuit({} constraints)", self.r1cs.num_constraints())
    }
}

fn open(info: &DeviceInfo, options: &DeviceOptions) -> Result<Opened, CudaError> {
    let gpu = Gpu::open(info.clone(), Kernels::from_environment())?;
    let card = Card::new(info, gpu.free_memory()?);
    let most = options.vram_limit.map_or(card.memory, |limit| limit.min(card.memory));
    let budget =
        Footprint { device: most.saturating_sub(options.vram_reserve) as u64, host: options.pinned_limit as u64 };
    let device = Arc::new(Device::new(Cuda::new(gpu, options.finish.clone())));
    Ok(Opened { device, card, shelf: Shelf::new(Budget(budget)), plans: Arc::default() })
}

/// Poison is ignored: what the mutexes here guard is replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

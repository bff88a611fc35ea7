//! All devices of this process, and the circuits that they have prepared: opened at the start, closed and opened again when
//! one needs a new context.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
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
        plan::{BG2, Card, Config, MemoryPlan, Room, Rows, Shape},
        points::Checks,
    },
    device::Device,
    prover::{Blinding, DeviceError, Fault, Partition, ProveError},
    srs::{Srs, Watch},
    timing::Timings,
};

/// The devices.
#[derive(Debug)]
pub struct Devices {
    slots: Vec<Slot>,
    options: DeviceOptions,
    /// Every circuit that may have a key on a device.
    circuits: Mutex<Vec<Weak<Circuit>>>,
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
    Open(Arc<Device<Cuda>>),
    /// To be opened again when nobody uses the old context any more.
    Closing(WeakGpu),
}

/// A circuit that devices can prove.
pub struct Circuit {
    host: Arc<Srs>,
    r1cs: Arc<R1cs>,
    /// Its parameter file.
    params: PathBuf,
    /// One a device; `None` where it is not prepared.
    keys: Vec<Mutex<Option<Arc<DeviceKey>>>>,
}

/// Plans that are tried where memory that was free is not there any more: somebody else may have taken it, or it may be in
/// pieces.
const SMALLER_PLANS: usize = 4;

impl Devices {
    /// Opens devices. Their kernels come from where [`Kernels::from_environment`] says.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn open(infos: Vec<DeviceInfo>, options: DeviceOptions) -> Result<Self, CudaError> {
        let open = |info: DeviceInfo| {
            let device = open(&info, &options)?;
            Ok(Slot { info, state: Mutex::new(State::Open(Arc::new(device))) })
        };
        let slots = infos.into_iter().map(open).collect::<Result<_, CudaError>>()?;
        Ok(Self { slots, options, circuits: Mutex::default() })
    }

    /// No device at all.
    pub fn none(options: DeviceOptions) -> Self {
        Self { slots: Vec::new(), options, circuits: Mutex::default() }
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
        let keys = self.slots.iter().map(|_| Mutex::new(None)).collect();
        let circuit = Arc::new(Circuit { host, r1cs, params, keys });
        {
            let mut circuits = lock(&self.circuits);
            circuits.retain(|circuit| circuit.strong_count() > 0);
            circuits.push(Arc::downgrade(&circuit));
        }
        for device in 0..self.slots.len() {
            let opened = self.device(device).map_err(|e| e.to_string())?;
            let key = self.prepare(&opened, &circuit, watch).map_err(|e| e.to_string())?;
            *lock(&circuit.keys[device]) = Some(key);
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
        let opened = self.device(device)?;
        let key = {
            let mut key = lock(&circuit.keys[device]);
            match &*key {
                Some(key) => key.clone(),
                None => key.insert(self.prepare(&opened, circuit, &Watch::nobody())?).clone(),
            }
        };
        opened.prove(&key, partition, blinding)
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
                State::Open(opened) => opened.backend().gpu().downgrade(),
                State::Closing(old) => old.clone(),
            };
            *state = State::Closing(old.clone());
            old
        };
        let circuits: Vec<_> = lock(&self.circuits).iter().filter_map(Weak::upgrade).collect();
        for circuit in circuits {
            *lock(&circuit.keys[device]) = None;
        }
        // A context lives as long as somebody uses it, and until then a new one would be the same.
        if old.is_in_use() {
            return Err(self.gone(device, "its old context is still in use".to_owned()));
        }
        let new = open(&slot.info, &self.options).map_err(|error| error.of_device(&slot.info.uuid))?;
        *lock(&slot.state) = State::Open(Arc::new(new));
        Ok(())
    }

    fn prepare(
        &self,
        opened: &Device<Cuda>,
        circuit: &Circuit,
        watch: &Watch<'_>,
    ) -> Result<Arc<DeviceKey>, ProveError> {
        let gpu = opened.backend().gpu();
        let failed = |error: CudaError| error.of_device(&gpu.info().uuid);
        let mut card = Card::new(gpu.info(), gpu.free_memory().map_err(failed)?);
        let r1cs = &circuit.r1cs;
        let shape = Shape::of(r1cs, Room::for_bits(r1cs.num_variables(), r1cs.num_constraints()));
        let DeviceOptions { checks, readers, .. } = self.options;
        let source = Source { path: &circuit.params, checks, readers, watch };
        for smaller in (0..SMALLER_PLANS).rev() {
            let plan = MemoryPlan::choose(&shape, &card, &self.options.config());
            let plan = plan.map_err(|error| failed(gpu.misuse(error.to_string())))?;
            tracing::info!("{}:\n{plan}", gpu.label());
            match DeviceKey::new(gpu, plan, &source, circuit.host.clone(), circuit.r1cs.clone()) {
                Ok(key) => return Ok(Arc::new(key)),
                Err(LoadError::Device(error @ CudaError::OutOfMemory { .. })) if smaller > 0 => {
                    tracing::warn!("planning with less memory: {error}");
                    card.memory -= card.memory / 8;
                }
                Err(LoadError::Device(error)) => return Err(failed(error)),
                Err(LoadError::File(error)) => return Err(ProveError::Input(error.to_string())),
            }
        }
        unreachable!("the last round returns")
    }

    fn gone(&self, device: usize, what: String) -> ProveError {
        let info = &self.slots[device].info;
        DeviceError { device: info.uuid.clone(), fault: Fault::Gone, what: format!("{info}: {what}") }.into()
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

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Circuit({} constraints)", self.r1cs.num_constraints())
    }
}

fn open(info: &DeviceInfo, options: &DeviceOptions) -> Result<Device<Cuda>, CudaError> {
    let gpu = Gpu::open(info.clone(), Kernels::from_environment())?;
    Ok(Device::new(Cuda::new(gpu, options.finish.clone())))
}

/// Poison is ignored: what the mutexes here guard is replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

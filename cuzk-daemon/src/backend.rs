//! The one place that knows which implementation of `cuzk_server::Proving` this build has, and how it is set up.

use std::{path::PathBuf, sync::Arc};

use cuzk_gpu::{
    arith::Backend,
    cpu::Pools,
    cuda::{
        Driver,
        prove::{DeviceOptions, Devices},
    },
    params::{Library, Verdicts},
    timeline::Timeline,
};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{
    config::{Config, GpuPolicy, MemoryBudget},
    exit::{Exit, Failure},
    porep::{PorepProving, Settings},
    resources::Plan,
    run::Prepared,
};

/// Runs a prepared daemon on this build's backend, to its end.
pub fn serve(prepared: Prepared) -> Result<(), Failure> {
    prepared.run(|config, plan| {
        let proving = open(config, plan)?;
        announce(&proving);
        Ok(proving)
    })
}

/// Sets up the backend, with the threads that the plan gives it.
pub fn open(config: &Config, plan: &Plan) -> Result<Arc<PorepProving>, Failure> {
    let mut library = Library::new(config.srs.param_cache.clone(), config.srs.allow_dev_params, verdicts());
    if let Some(cache) = cache_folder() {
        library = library.with_cache(cache.join("cuzk/srs"));
    }
    let (compute, finish) = (pool("compute", plan.compute_threads)?, pool("finish", plan.finish_threads)?);
    let pools = Pools { kernels: compute.clone(), finish };
    let gpus = open_gpus(config, plan, pools.clone())?;
    let settings = Settings {
        arithmetic: Backend::current(),
        check: config.synthesis.check,
        circuit_cache: cache_folder(),
        on_cpu: config.gpus.policy != GpuPolicy::Required,
        host_memory_bytes: plan.memory.total(),
        synthesis: compute,
        prover: pools,
    };
    let timeline = timeline(config, &gpus)?;
    Ok(Arc::new(PorepProving::new(library, settings, gpus, timeline)))
}

/// The GPUs that the configuration names, or none if it does not insist on any.
fn open_gpus(config: &Config, plan: &Plan, pools: Pools) -> Result<Devices, Failure> {
    let settings = &config.gpus;
    let options = DeviceOptions {
        workers: settings.gpu_workers_per_device.get() as usize,
        vram_limit: match settings.vram_limit {
            MemoryBudget::Auto => None,
            MemoryBudget::Fixed(size) => Some(size.bytes() as usize),
        },
        vram_reserve: settings.vram_reserve.bytes() as usize,
        // What a job needs must fit that share, or it is refused.
        pinned_limit: plan.memory.work as usize,
        b_g2: settings.b_g2_msm,
        checks: config.srs.check_points.checks(),
        readers: plan.compute_threads.clamp(1, 16),
        watchdog: settings.kernel_watchdog.duration(),
        pools: Some(pools),
    };
    let none = || Devices::none(options.clone());
    if settings.policy == GpuPolicy::Never {
        return Ok(none());
    }
    let names: Vec<_> = settings.devices.0.iter().map(ToString::to_string).collect();
    match Driver::load().and_then(|driver| Devices::open(driver.select(&names)?, options.clone())) {
        Ok(devices) => Ok(devices),
        // Who names devices means them.
        Err(error) if settings.policy == GpuPolicy::Required || !names.is_empty() => {
            Err(Failure::new(Exit::Failure, format!("[gpus] policy or devices: {error}")))
        }
        Err(error) => {
            tracing::warn!("proving on the CPU: {error}");
            Ok(none())
        }
    }
}

fn timeline(config: &Config, gpus: &Devices) -> Result<Timeline, Failure> {
    let Some(path) = &config.logging.timeline else {
        return Ok(Timeline::in_memory());
    };
    let names: Vec<_> = gpus.infos().map(ToString::to_string).chain(["cpu".to_owned()]).collect();
    let failed = |e| Failure::new(Exit::Failure, format!("logging.timeline = {}: {e}", path.display()));
    Timeline::with_file(path, &names).map_err(failed)
}

fn pool(name: &'static str, threads: usize) -> Result<Arc<ThreadPool>, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(move |i| format!("cuzk-{name}-{i}")).build();
    pool.map(Arc::new).map_err(|e| Failure::new(Exit::Failure, format!("cannot start {threads} {name} threads: {e}")))
}

/// The digests of parameter files that this user's processes computed before.
pub fn verdicts() -> Verdicts {
    cache_folder().map_or_else(Verdicts::in_memory, |cache| Verdicts::load(cache.join("cuzk/digests.json")))
}

/// The user's cache folder: `XDG_CACHE_HOME`, or `.cache` in the home folder.
pub fn cache_folder() -> Option<PathBuf> {
    dirs::cache_dir()
}

fn announce(proving: &PorepProving) {
    use cuzk_server::Proving;
    let provable: Vec<_> = proving.provable_circuits().iter().map(ToString::to_string).collect();
    let folder = proving.library().folder().display();
    match provable.is_empty() {
        true => tracing::warn!("no usable proving parameters in {folder}: `cuzk-daemon params list` says why"),
        false => tracing::info!("parameters in {folder}: {}", provable.join(", ")),
    }
    for gpu in proving.gpus().infos() {
        tracing::info!("device: {gpu}");
    }
    tracing::info!("device: cpu ({:?} arithmetic)", proving.settings().arithmetic);
    for warning in proving.warnings() {
        tracing::warn!("{warning}");
    }
}

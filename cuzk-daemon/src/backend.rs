//! The one place that knows which implementation of `cuzk_server::Proving` this build has, and how it is set up.

use std::{path::PathBuf, sync::Arc};

use cuzk_gpu::{
    arith::Backend,
    cpu::Pools,
    params::{Library, Verdicts},
};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{
    config::Config,
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
    let compute = pool("compute", plan.compute_threads)?;
    let settings = Settings {
        arithmetic: Backend::current(),
        check: config.synthesis.check,
        circuit_cache: cache_folder(),
        host_memory_bytes: plan.memory.total(),
        synthesis: compute.clone(),
        prover: Pools { kernels: compute, finish: pool("finish", plan.finish_threads)? },
    };
    Ok(Arc::new(PorepProving::new(library, settings)))
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
    tracing::info!("devices: cpu ({:?} arithmetic)", proving.settings().arithmetic);
    for warning in proving.warnings() {
        tracing::warn!("{warning}");
    }
}

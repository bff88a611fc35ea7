//! What no single key can tell: values that do not go together, or not with this build.

use super::{
    layers::Settings,
    problem::{Problem, Problems, Warning},
    schema,
    types::{GpuPolicy, MemoryBudget},
};

/// Whether this build can prove on a GPU.
pub const HAS_GPU_BACKEND: bool = false;

/// Refuses combinations that cannot work, and warns of those that probably do not do what was meant.
pub fn check(mut settings: Settings) -> Result<Settings, Problems> {
    let config = &settings.config;
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    let mut refuse = |table: &str, name: &str, reason: String| {
        let key = schema::find(table, name).expect("checks name keys of the schema");
        problems.push(Problem::Conflict { at: settings.origin(key).clone(), key: key.path(), reason });
    };

    let listen = &config.daemon.listen.0;
    if listen.is_empty() {
        refuse("daemon", "listen", "names no address: nobody could reach the daemon".into());
    }
    for (i, endpoint) in listen.iter().enumerate() {
        if endpoint.is_exposed() && !config.daemon.allow_insecure {
            refuse(
                "daemon",
                "listen",
                format!(
                    "has {endpoint}, which other machines can reach, and this build has neither TLS nor \
                     authentication; listen at 127.0.0.1 or a unix socket, or set daemon.allow_insecure = true"
                ),
            );
        }
        if listen[..i].contains(endpoint) {
            refuse("daemon", "listen", format!("has {endpoint} twice"));
        }
    }
    if config.gpus.policy == GpuPolicy::Required && !HAS_GPU_BACKEND {
        refuse(
            "gpus",
            "policy",
            "is \"required\", but this build has no GPU backend; set \"prefer\" or \"never\" to prove on the CPU"
                .into(),
        );
    }
    if let MemoryBudget::Fixed(limit) = config.gpus.vram_limit
        && limit <= config.gpus.vram_reserve
    {
        let reserve = config.gpus.vram_reserve;
        refuse("gpus", "vram_limit", format!("is {limit}, of which gpus.vram_reserve = {reserve} leaves nothing"));
    }
    if let MemoryBudget::Fixed(size) = config.memory.total_budget
        && size.bytes() == 0
    {
        refuse("memory", "total_budget", "is 0: no proof would ever start".into());
    }
    // gRPC counts message lengths in 32 bits.
    let message = config.limits.max_message;
    if message.bytes() == 0 || message.bytes() > u64::from(u32::MAX) {
        refuse("limits", "max_message", format!("is {message}; it must lie between 1B and 4GiB less one byte"));
    }
    if config.scheduler.max_queued_bytes < message {
        refuse(
            "scheduler",
            "max_queued_bytes",
            format!(
                "is {}, less than one message of limits.max_message = {message}: such a job could never be queued",
                config.scheduler.max_queued_bytes
            ),
        );
    }

    if !HAS_GPU_BACKEND && !config.gpus.devices.0.is_empty() {
        let key = schema::find("gpus", "devices").expect("checks name keys of the schema");
        warnings.push(Warning {
            at: settings.origin(key).clone(),
            name: key.path(),
            text: "has no effect: this build has no GPU backend and proves on the CPU".into(),
        });
    }
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    settings.warnings.extend(warnings);
    Ok(settings)
}

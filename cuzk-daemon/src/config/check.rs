//! What no single key can tell: values that do not go together, such as too small limits.

use crate::access;

use super::{
    layers::Settings,
    problem::{Problem, Problems},
    schema,
    types::MemoryBudget,
};

/// Refuses combinations that cannot work.
pub fn check(settings: Settings) -> Result<Settings, Problems> {
    let config = &settings.config;
    let mut problems = Vec::new();
    let mut refuse = |table: &str, name: &str, reason: String| {
        let key = schema::find(table, name).expect("checks name keys of the schema");
        problems.push(Problem::Conflict { at: settings.origin(key).clone(), key: key.path(), reason });
    };

    let listen = &config.daemon.listen.0;
    if listen.is_empty() {
        refuse("daemon", "listen", "names no address: nobody could reach the daemon".into());
    }
    let exposure_refused = access::exposure_refused(config);
    for (i, endpoint) in listen.iter().enumerate() {
        if let (true, Some(why)) = (endpoint.is_exposed(), &exposure_refused) {
            refuse("daemon", "listen", format!("has {endpoint}, which other machines can reach, and {why}"));
        }
        if listen[..i].contains(endpoint) {
            refuse("daemon", "listen", format!("has {endpoint} twice"));
        }
    }
    if let Some(endpoint) = &config.http.listen {
        if let (true, Some(why)) = (endpoint.is_exposed(), &exposure_refused) {
            refuse("http", "listen", format!("is {endpoint}, which other machines can reach, and {why}"));
        }
        if listen.contains(endpoint) {
            refuse(
                "http",
                "listen",
                format!("is {endpoint}, which daemon.listen has too: give it an address of its own"),
            );
        }
    }
    let tls = &config.tls;
    match (&tls.cert, &tls.key) {
        (Some(_), None) => refuse("tls", "cert", "is set without tls.key: set both, or neither".into()),
        (None, Some(_)) => refuse("tls", "key", "is set without tls.cert: set both, or neither".into()),
        (None, None) if tls.client_ca.is_some() => {
            refuse("tls", "client_ca", "is set without tls.cert and tls.key: only TLS shows certificates".into());
        }
        _ => {}
    }
    if config.auth.unix && config.auth.tokens.is_none() {
        refuse("auth", "unix", "is true, but there are no tokens: set auth.tokens".into());
    }
    if config.gpus.kernel_watchdog.duration().is_zero() {
        refuse("gpus", "kernel_watchdog", "is 0: every GPU would count as stuck at once".into());
    }
    if config.limits.body_timeout.duration().is_zero() {
        refuse("limits", "body_timeout", "is 0: every request would be given up at once".into());
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

    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    Ok(settings)
}

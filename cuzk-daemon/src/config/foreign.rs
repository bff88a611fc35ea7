//! The keys of a `cuzk.toml` for the public cuzk (filecoin-project/curio, `extern/cuzk`), and what becomes of each here:
//! one table for `config import`, which translates such a file, and for the daemon, which warns of what it does not
//! honour, so that the file can stay as it is.

use cuzk_synth::{circuit::CircuitId, porep};
use toml::Value;

use super::{setting::Setting, units::ByteSize};
use crate::{access, config::schema::Config, listen::Endpoint};

/// One of their keys.
pub(super) struct Foreign {
    pub(super) table: &'static str,
    pub(super) name: &'static str,
    pub(super) fate: Fate,
    /// The value that theirs takes where the file has none, if ours takes another one that matters.
    pub(super) default: Option<&'static str>,
}

/// What becomes of a key.
pub(super) enum Fate {
    /// Ours has it, by the same name.
    Same(Convert),
    /// Ours has it as another key, of this table and name; what that is.
    Becomes((&'static str, &'static str), Convert, &'static str),
    /// Nothing: what stands in for it.
    NotNeeded(&'static str),
}

/// From a value of theirs to one of ours, or the reason why there is none.
pub(super) type Convert = fn(&Value) -> Result<Converted, String>;

/// A value of ours.
pub(super) struct Converted {
    pub(super) value: Value,
    /// What the operator should know about it.
    pub(super) note: Option<String>,
}

/// Their key of that name, if they have one.
pub(super) fn find(table: &str, name: &str) -> Option<&'static Foreign> {
    ALL.iter().find(|key| key.table == table && key.name == name)
}

impl Foreign {
    /// What stands in for a key that ours does not have under that name.
    pub(super) fn instead(&self) -> Option<&'static str> {
        match self.fate {
            Fate::Same(_) => None,
            Fate::Becomes(_, _, instead) | Fate::NotNeeded(instead) => Some(instead),
        }
    }
}

const fn same(table: &'static str, name: &'static str, convert: Convert) -> Foreign {
    Foreign { table, name, fate: Fate::Same(convert), default: None }
}

const fn gone(table: &'static str, name: &'static str, instead: &'static str) -> Foreign {
    Foreign { table, name, fate: Fate::NotNeeded(instead), default: None }
}

const ALL_MEMORY: &str = "memory.total_budget covers all host memory";

/// All keys that their releases have had, by table.
pub(super) static ALL: &[Foreign] = &[
    Foreign { default: Some("unix:///run/curio/cuzk.sock"), ..same("daemon", "listen", listen) },
    Foreign {
        table: "daemon",
        name: "status_listen",
        fate: Fate::Becomes(("http", "listen"), listen, "http.listen is the address of the status page"),
        default: None,
    },
    Foreign { default: Some("/data/zk/params"), ..same("srs", "param_cache", as_it_is) },
    same("srs", "preload", circuits),
    same("memory", "total_budget", size),
    same("memory", "safety_margin", size),
    gone("memory", "pinned_budget", ALL_MEMORY),
    gone("memory", "working_memory_budget", ALL_MEMORY),
    gone(
        "memory",
        "eviction_min_idle",
        "parameters stay loaded until others need their memory, or a client calls EvictSRS",
    ),
    same("gpus", "devices", devices),
    same("gpus", "gpu_threads", as_it_is),
    same("gpus", "gpu_workers_per_device", as_it_is),
    same("scheduler", "max_batch_size", as_it_is),
    same("scheduler", "max_batch_wait_ms", as_it_is),
    same("scheduler", "sort_by_type", as_it_is),
    same("synthesis", "threads", as_it_is),
    gone(
        "synthesis",
        "partition_workers",
        "memory.total_budget and synthesis.threads decide how many partitions run at once",
    ),
    gone("pipeline", "enabled", "synthesis always runs ahead of the devices, as far as memory.total_budget admits"),
    gone("pipeline", "synthesis_lookahead", "pipeline.lookahead counts the partitions ready ahead of each device"),
    gone("pipeline", "synthesis_concurrency", "synthesis.workers counts the partitions synthesized at once"),
    gone("pipeline", "slot_size", "partitions are always synthesized and proven one by one"),
    Foreign {
        table: "pipeline",
        name: "max_gpu_queue_depth",
        fate: Fate::Becomes(
            ("pipeline", "lookahead"),
            queue_depth,
            "pipeline.lookahead counts the partitions ready ahead of each device",
        ),
        default: None,
    },
    same("logging", "level", as_it_is),
    same("logging", "format", format),
];

fn plain(value: Value) -> Result<Converted, String> {
    Ok(Converted { value, note: None })
}

fn as_it_is(value: &Value) -> Result<Converted, String> {
    plain(value.clone())
}

/// Theirs may be reached by everybody; ours only with TLS and somebody who is asked, so the port stays and the address
/// becomes the loopback's.
fn listen(value: &Value) -> Result<Converted, String> {
    if value.is_array() {
        // Only ours has lists.
        return plain(value.clone());
    }
    let endpoint = Endpoint::from_toml(value)?;
    let (true, Endpoint::Tcp(address)) = (endpoint.is_exposed(), &endpoint) else { return plain(value.clone()) };
    let loopback: std::net::IpAddr = match address {
        std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    let here = Endpoint::Tcp((loopback, address.port()).into());
    let why = access::exposure_refused(&Config::default()).unwrap_or_default();
    Ok(Converted {
        value: here.to_toml(),
        note: Some(format!("{here} in its place: other machines can reach {endpoint}, and {why}")),
    })
}

/// Theirs takes a bare number for bytes.
fn size(value: &Value) -> Result<Converted, String> {
    match value.as_str().map(|text| text.trim().parse()) {
        Some(Ok(bytes)) => plain(ByteSize::from_bytes(bytes).to_toml()),
        _ => plain(value.clone()),
    }
}

/// Theirs are nvidia-smi's numbers.
fn devices(value: &Value) -> Result<Converted, String> {
    let note = "these are the CUDA driver's numbers, which may differ from nvidia-smi's: `cuzk-daemon gpu list --local` \
                shows them, and UUIDs, which are the same for both";
    let named = value.as_array().is_none_or(|devices| !devices.is_empty());
    Ok(Converted { value: value.clone(), note: named.then(|| note.to_owned()) })
}

/// Without those that nothing here proves.
fn circuits(value: &Value) -> Result<Converted, String> {
    let all: Vec<String> =
        value.clone().try_into().map_err(|_| format!("expected a list of circuit ids, found {value}"))?;
    let proven = |text: &&String| text.parse::<CircuitId>().is_ok_and(|id| porep::parameter_stem(id).is_ok());
    let (taken, left): (Vec<_>, Vec<_>) = all.iter().partition(proven);
    let left: Vec<_> = left.into_iter().map(String::as_str).collect();
    let value = taken.into_iter().cloned().map(Value::String).collect();
    Ok(Converted {
        value: Value::Array(value),
        note: (!left.is_empty()).then(|| format!("without {}, which this build does not prove", left.join(", "))),
    })
}

/// Theirs throttles nothing with 0; ours takes one for each worker then.
fn queue_depth(value: &Value) -> Result<Converted, String> {
    let note = match value.as_integer() {
        Some(0) => {
            Some("0 is one for each worker of a device: more ready partitions would make nothing faster".to_owned())
        }
        _ => None,
    };
    Ok(Converted { value: value.clone(), note })
}

/// Theirs writes for people unless it says "json".
fn format(value: &Value) -> Result<Converted, String> {
    match value.as_str() {
        Some("json" | "text") | None => plain(value.clone()),
        Some(other) => {
            Ok(Converted { value: "text".into(), note: Some(format!("{other:?} is for people, as \"text\" is")) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn what_is_the_same_is_a_key_of_ours_and_all_else_is_not() {
        for foreign in ALL {
            let ours = schema::find(foreign.table, foreign.name).is_some();
            let path = format!("{}.{}", foreign.table, foreign.name);
            assert_eq!(ours, matches!(foreign.fate, Fate::Same(_)), "{path}");
            assert_eq!(ours, foreign.instead().is_none(), "{path}");
            if let Fate::Becomes((table, name), ..) = foreign.fate {
                assert!(schema::find(table, name).is_some(), "{path}");
            }
        }
    }

    #[test]
    fn each_is_there_once() {
        for (i, foreign) in ALL.iter().enumerate() {
            let found = find(foreign.table, foreign.name).expect("in the table");
            assert!(std::ptr::eq(found, &ALL[i]), "{}.{}", foreign.table, foreign.name);
        }
        assert!(find("synthesis", "thread").is_none());
    }
}

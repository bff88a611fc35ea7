//! Names that a `cuzk.toml` written for another daemon may hold and that ours does not honour: each gives a warning
//! by name and says what replaces it, so that the file can stay as it is.

/// What stands in for a key that we know and do not honour; `None` for a key that nobody knows.
pub(super) fn replacement(table: &str, name: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|row| row.0 == table && row.1 == name).map(|row| row.2)
}

/// Table, key, and what replaces it.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("memory", "pinned_budget", "memory.total_budget covers all host memory"),
    ("memory", "working_memory_budget", "memory.total_budget covers all host memory"),
    ("memory", "eviction_min_idle", "parameters stay loaded until a client calls EvictSRS"),
    (
        "synthesis",
        "partition_workers",
        "memory.total_budget and synthesis.threads decide how many partitions run at once",
    ),
    ("pipeline", "enabled", "synthesis always runs ahead of the devices, as far as memory.total_budget admits"),
    ("pipeline", "synthesis_lookahead", "pipeline.lookahead counts the partitions ready ahead of each device"),
    ("pipeline", "synthesis_concurrency", "synthesis.workers counts the partitions synthesized at once"),
    ("pipeline", "slot_size", "partitions are always synthesized and proven one by one"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn known_keys_have_a_replacement() {
        assert!(replacement("pipeline", "enabled").is_some());
        assert!(replacement("synthesis", "partition_workers").is_some());
        assert!(replacement("synthesis", "thread").is_none());
    }

    #[test]
    fn no_key_is_ours_and_foreign() {
        for key in schema::KEYS {
            assert!(replacement(key.table, key.name).is_none(), "{}", key.path());
        }
    }
}

//! Names that a `cuzk.toml` written for another daemon may hold and that ours does not honour: each gives a warning
//! by name and says what replaces it, so that the file can stay as it is.

/// What stands in for a key that we know and do not honour; `None` for a key that nobody knows.
pub(super) fn replacement(table: &str, name: &str) -> Option<&'static str> {
    let all_keys = "*";
    FOREIGN.iter().find(|row| row.0 == table && (row.1 == name || row.1 == all_keys)).map(|row| row.2)
}

/// Whether the whole table is foreign.
pub(super) fn is_foreign_table(table: &str) -> bool {
    FOREIGN.iter().any(|row| row.0 == table && row.1 == "*")
}

/// Table, key (`*`: all of them), and what replaces it.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("memory", "pinned_budget", "memory.total_budget covers all host memory"),
    ("memory", "working_memory_budget", "memory.total_budget covers all host memory"),
    ("memory", "eviction_min_idle", "parameters stay loaded until a client calls EvictSRS"),
    (
        "synthesis",
        "partition_workers",
        "memory.total_budget and synthesis.threads decide how many partitions run at once",
    ),
    ("pipeline", "*", "synthesis always runs ahead of the devices, as far as memory.total_budget admits"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn whole_tables_and_single_keys() {
        assert!(replacement("pipeline", "whatever").is_some());
        assert!(replacement("synthesis", "partition_workers").is_some());
        assert!(replacement("synthesis", "thread").is_none());
        assert!(is_foreign_table("pipeline") && !is_foreign_table("synthesis"));
    }

    #[test]
    fn no_key_is_ours_and_foreign() {
        for key in schema::KEYS {
            assert!(replacement(key.table, key.name).is_none(), "{}", key.path());
        }
    }
}

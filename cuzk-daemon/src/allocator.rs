//! The allocator of the program.
//!
//! A proof takes and leaves hundreds of megabytes several times. glibc maps and unmaps them each time, and clearing the
//! fresh pages took a fifth of a 2 KiB proof. jemalloc keeps what was freed for the next one, and a single background
//! thread of its own gives back what nobody wanted for a while: unmapping from many threads would make all of them
//! flush their address translations.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// jemalloc's configuration: freed pages are kept for a minute, longer than the pauses between jobs of a busy node, then
/// given back by the background thread. Without the threshold, allocations from 8 MiB up would be given back at once.
// The name under which jemalloc looks for it.
#[allow(non_upper_case_globals)]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static malloc_conf: &[u8; 75] = b"background_thread:true,dirty_decay_ms:60000,oversize_threshold:0,narenas:8\0";

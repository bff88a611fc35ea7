//! A circuit on the devices of a process.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Weak},
};

use cuzk_synth::r1cs::R1cs;

use super::devices::{Opened, Slot, lock, opened};
use crate::{
    cuda::plan::{MemoryPlan, Rows},
    shelf::Tier,
    srs::Srs,
};

/// A circuit that devices can prove. When it is dropped, it leaves the devices.
pub struct Circuit {
    pub(super) number: usize,
    pub(super) host: Arc<Srs>,
    pub(super) r1cs: Arc<R1cs>,
    /// How A·w and B·w of its partitions come.
    pub(super) rows: Rows,
    /// Its parameter file.
    pub(super) params: PathBuf,
    pub(super) slots: Weak<Vec<Slot>>,
}

impl Circuit {
    /// Whether a device has it.
    pub fn is_on_a_device(&self) -> bool {
        self.opened().iter().any(|opened| opened.shelf.tier(self.number) == Tier::Hot)
    }

    /// Page-locked host memory that it takes on all devices together while it is there, in bytes.
    pub fn pinned_bytes(&self) -> u64 {
        let of_device = |opened: &Opened| lock(&opened.plans).get(&self.number).map(MemoryPlan::pinned_bytes);
        self.opened().iter().filter_map(of_device).sum::<usize>() as u64
    }

    fn opened(&self) -> Vec<Opened> {
        self.slots.upgrade().map_or_else(Vec::new, |slots| opened(&slots))
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

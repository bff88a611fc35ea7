//! The one budget of host memory: who may take how much, and reservations that free themselves.
//!
//! The budget is divided, not shared, so that nothing waits for memory while it holds what another needs:
//!
//! | share | who takes it | who waits for it |
//! |---|---|---|
//! | bodies | requests in reception, until they are parsed | other requests, which hold nothing yet |
//! | queue | checked requests of unfinished jobs | nobody: what does not fit is refused |
//! | work | parameters, witnesses, buffers of devices | a synthesis, before it holds anything |
//!
//! A job is taken only if its parameters and one of its partitions fit the work share together, so whatever else is
//! there ends some day and makes room.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What memory is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Use {
    /// Requests in reception.
    Body,
    /// Checked requests of unfinished jobs.
    Queue,
    /// Proving parameters and constraint systems, in whatever tier of host memory.
    Params,
    /// Synthesized partitions, to the end of their proofs.
    Witness,
    /// Buffers that devices keep in host memory, such as page-locked staging.
    Device,
}

impl Use {
    /// All uses.
    pub const ALL: [Self; 5] = [Self::Body, Self::Queue, Self::Params, Self::Witness, Self::Device];

    /// For logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Queue => "queue",
            Self::Params => "params",
            Self::Witness => "witness",
            Self::Device => "device",
        }
    }
}

/// How the budget is divided, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// For [`Use::Body`].
    pub bodies: u64,
    /// For [`Use::Queue`].
    pub queue: u64,
    /// For everything else.
    pub work: u64,
}

impl Shares {
    /// Divides `total`: a quarter for bodies, up to 1 GiB, more than which no network fills faster than it is parsed; a
    /// quarter for queued requests, up to `max_queued`; the rest is for work.
    pub fn of(total: u64, max_queued: u64) -> Self {
        let bodies = (total / 4).min(1 << 30);
        let queue = (total / 4).min(max_queued);
        Self { bodies, queue, work: total - bodies - queue }
    }

    /// The whole budget.
    pub fn total(&self) -> u64 {
        self.bodies + self.queue + self.work
    }

    fn of_use(&self, what: Use) -> u64 {
        match what {
            Use::Body => self.bodies,
            Use::Queue => self.queue,
            Use::Params | Use::Witness | Use::Device => self.work,
        }
    }
}

/// The budget. Clones are one budget.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    shares: Shares,
    used: Mutex<[u64; Use::ALL.len()]>,
}

/// Memory that somebody holds; given back when dropped. Drop it after the memory itself.
pub struct Reservation {
    budget: Budget,
    what: Use,
    bytes: u64,
}

impl Budget {
    /// A budget that nobody has taken from.
    pub fn new(shares: Shares) -> Self {
        Self(Arc::new(Inner { shares, used: Mutex::new([0; Use::ALL.len()]) }))
    }

    /// How it is divided.
    pub fn shares(&self) -> Shares {
        self.0.shares
    }

    /// Bytes reserved for a use.
    pub fn used_for(&self, what: Use) -> u64 {
        self.lock()[what as usize]
    }

    /// Bytes reserved in all.
    pub fn used(&self) -> u64 {
        self.lock().iter().sum()
    }

    /// Bytes of the share of a use that nobody holds.
    pub fn free_for(&self, what: Use) -> u64 {
        self.0.free(&self.lock(), what)
    }

    /// Takes memory if there is so much. Never waits.
    pub fn try_reserve(&self, what: Use, bytes: u64) -> Option<Reservation> {
        let mut used = self.lock();
        if bytes > self.0.free(&used, what) {
            return None;
        }
        used[what as usize] += bytes;
        drop(used);
        Some(Reservation { budget: self.clone(), what, bytes })
    }

    fn lock(&self) -> MutexGuard<'_, [u64; Use::ALL.len()]> {
        // Sums of whole changes only: a panic elsewhere leaves them right.
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn free(&self, used: &[u64; Use::ALL.len()], what: Use) -> u64 {
        let held: u64 = match what {
            Use::Body | Use::Queue => used[what as usize],
            Use::Params | Use::Witness | Use::Device => {
                [Use::Params, Use::Witness, Use::Device].into_iter().map(|u| used[u as usize]).sum()
            }
        };
        self.shares.of_use(what).saturating_sub(held)
    }
}

impl Reservation {
    /// How much.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Corrects it to what was really taken, also if that is more than there was: the books must tell the truth.
    pub fn correct(&mut self, bytes: u64) {
        let mut used = self.budget.lock();
        let entry = &mut used[self.what as usize];
        *entry = *entry - self.bytes + bytes;
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.lock()[self.what as usize] -= self.bytes;
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.bytes, self.what.label())
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("shares", &self.0.shares).field("used", &*self.lock()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: Shares = Shares { bodies: 10, queue: 20, work: 100 };

    #[test]
    fn shares_do_not_take_from_each_other() {
        let budget = Budget::new(SHARES);
        let params = budget.try_reserve(Use::Params, 70).expect("free");
        assert!(budget.try_reserve(Use::Witness, 31).is_none());
        let witness = budget.try_reserve(Use::Witness, 30).expect("free");
        assert!(budget.try_reserve(Use::Device, 1).is_none(), "parameters and witnesses share one");
        assert!(budget.try_reserve(Use::Body, 11).is_none());
        let _body = budget.try_reserve(Use::Body, 10).expect("its own share");
        let _queue = budget.try_reserve(Use::Queue, 20).expect("its own share");
        assert_eq!(budget.used(), 130);
        drop((params, witness));
        assert_eq!((budget.used(), budget.free_for(Use::Device)), (30, 100));
    }

    #[test]
    fn the_books_tell_the_truth_even_past_the_limit() {
        let budget = Budget::new(SHARES);
        let mut params = budget.try_reserve(Use::Params, 90).expect("free");
        params.correct(120);
        assert_eq!((budget.used_for(Use::Params), budget.free_for(Use::Witness)), (120, 0));
        params.correct(40);
        assert_eq!((params.bytes(), budget.free_for(Use::Witness)), (40, 60));
    }

    #[test]
    fn every_size_is_divided_whole() {
        for total in [0, 3, 1 << 20, 1 << 30, 3 << 30, 1 << 40] {
            let shares = Shares::of(total, 4 << 30);
            assert_eq!(shares.total(), total);
            assert!(shares.work >= total / 2);
        }
        let large = Shares::of(64 << 30, 4 << 30);
        assert_eq!((large.bodies, large.queue), (1 << 30, 4 << 30));
    }
}

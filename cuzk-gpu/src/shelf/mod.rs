//! Parameters of several circuits on one device, lent to whoever proves: those that nobody uses make room for others.
//!
//! * [`tiers`]: who is where, who has to make room. Pure;
//! * [`Shelf`]: loads and frees as the tiers say, and lends.

pub mod tiers;

use std::{
    collections::BTreeMap,
    fmt,
    ops::Deref,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use self::tiers::Step;
pub use self::tiers::{Budget, Evicted, Footprint, Needs, NoRoom, Tier, Tiers};

/// What is on a device, by circuit. The form in host memory is its owner's; here [`Tier::Warm`] means only that it has been
/// on the device. Clones are the same shelf.
pub struct Shelf<K: Copy + Ord + fmt::Debug, H>(Arc<Inner<K, H>>);

struct Inner<K, H> {
    state: Mutex<State<K, H>>,
    changed: Condvar,
}

struct State<K, H> {
    tiers: Tiers<K>,
    hot: BTreeMap<K, Arc<H>>,
}

/// Parameters on the device, which stay there while this lives.
pub struct Lease<K: Copy + Ord + fmt::Debug, H> {
    inner: Arc<Inner<K, H>>,
    key: K,
    /// Always there, but while it is dropped.
    hot: Option<Arc<H>>,
}

impl<K: Copy + Ord + fmt::Debug, H> Clone for Shelf<K, H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Copy + Ord + fmt::Debug, H> Shelf<K, H> {
    /// An empty shelf.
    pub fn new(budget: Budget) -> Self {
        let state = State { tiers: Tiers::new(budget), hot: BTreeMap::new() };
        Self(Arc::new(Inner { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Parameters on the device, which `load` puts there if they are not; others that nobody uses make room, those that were
    /// used longest ago first. Waits while all others are in use, and while somebody else loads the same.
    ///
    /// # Errors
    /// What `load` says, or [`NoRoom`] if they do not fit even alone.
    pub fn lease<E: From<NoRoom<K>>>(
        &self,
        key: K,
        needs: Needs,
        mut load: impl FnMut() -> Result<H, E>,
    ) -> Result<Lease<K, H>, E> {
        let inner = &self.0;
        let mut state = inner.lock();
        loop {
            match state.tiers.ask(key, Tier::Hot, needs)? {
                Step::Ready => {
                    let hot = Some(state.hot[&key].clone());
                    return Ok(Lease { inner: inner.clone(), key, hot });
                }
                Step::Wait => state = inner.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Step::Load { make_room } => {
                    make_room.into_iter().for_each(|(key, tier)| state.lower(key, tier));
                    drop(state);
                    let loading = Loading { inner, key };
                    let hot = Arc::new(load()?);
                    let mut loaded = inner.lock();
                    loaded.hot.insert(key, hot);
                    loaded.tiers.handle_loaded(key);
                    drop(loaded);
                    drop(loading);
                    state = inner.lock();
                }
            }
        }
    }

    /// Frees a circuit's parameters, at once or when nobody uses them any more.
    pub fn evict(&self, key: K) -> Evicted {
        let mut state = self.0.lock();
        let evicted = state.tiers.evict(key);
        if evicted.in_use == 0 {
            state.lower(key, Tier::Cold);
        }
        drop(state);
        self.0.changed.notify_all();
        evicted
    }

    /// Where a circuit's parameters are.
    pub fn tier(&self, key: K) -> Tier {
        self.0.lock().tiers.tier(key)
    }

    /// What is in use of the budget.
    pub fn used(&self) -> Footprint {
        self.0.lock().tiers.used()
    }
}

/// A load under way; when it ends without success, others may try.
struct Loading<'a, K: Copy + Ord + fmt::Debug, H> {
    inner: &'a Inner<K, H>,
    key: K,
}

impl<K: Copy + Ord + fmt::Debug, H> Drop for Loading<'_, K, H> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        let tier = state.tiers.handle_load_ended(self.key);
        state.lower(self.key, tier);
        drop(state);
        self.inner.changed.notify_all();
    }
}

impl<K, H> Inner<K, H> {
    /// No load runs under the lock, so a panic leaves the tables as they were.
    fn lock(&self) -> MutexGuard<'_, State<K, H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Ord, H> State<K, H> {
    /// Frees what is above a tier. Under the lock: nobody is to load into memory that is not free yet.
    fn lower(&mut self, key: K, tier: Tier) {
        if tier < Tier::Hot {
            self.hot.remove(&key);
        }
    }
}

impl<K: Copy + Ord + fmt::Debug, H> Deref for Lease<K, H> {
    type Target = H;

    fn deref(&self) -> &H {
        self.hot.as_ref().expect("it is there until it is dropped")
    }
}

impl<K: Copy + Ord + fmt::Debug, H> Drop for Lease<K, H> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        // First, or the shelf would not be the last to hold it.
        self.hot = None;
        if let Some(tier) = state.tiers.release(self.key) {
            state.lower(self.key, tier);
        }
        drop(state);
        self.inner.changed.notify_all();
    }
}

impl<K: Copy + Ord + fmt::Debug, H> fmt::Debug for Shelf<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf({:?})", self.0.lock().tiers)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    /// Circuits of the size that they are called by; counts what is on the device.
    #[derive(Clone)]
    struct Fake {
        shelf: Shelf<usize, Counted>,
        on_device: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
    }

    struct Counted(Arc<AtomicUsize>, usize);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(self.1, Ordering::SeqCst);
        }
    }

    #[derive(Debug, PartialEq)]
    enum Failure {
        NoRoom(NoRoom<usize>),
        Fake,
    }

    impl From<NoRoom<usize>> for Failure {
        fn from(error: NoRoom<usize>) -> Self {
            Self::NoRoom(error)
        }
    }

    impl Fake {
        fn new(device: u64) -> Self {
            let shelf = Shelf::new(Budget(Footprint { device, host: 3 }));
            Self { shelf, on_device: Arc::default(), most: Arc::default() }
        }

        fn lease(&self, key: usize) -> Result<Lease<usize, Counted>, Failure> {
            self.shelf.lease(key, needs(key), || {
                let now = self.on_device.fetch_add(key, Ordering::SeqCst) + key;
                self.most.fetch_max(now, Ordering::SeqCst);
                Ok(Counted(self.on_device.clone(), key))
            })
        }

        fn on_device(&self) -> usize {
            self.on_device.load(Ordering::SeqCst)
        }
    }

    fn needs(key: usize) -> Needs {
        Needs { warm: Footprint::default(), hot: Footprint { device: key as u64, host: 1 } }
    }

    #[test]
    fn a_lease_keeps_and_frees() {
        let fake = Fake::new(10);
        let lease = fake.lease(7).unwrap();
        assert_eq!((lease.1, fake.on_device()), (7, 7));
        assert_eq!(fake.shelf.evict(7), Evicted { tier: Tier::Hot, freed: Footprint::default(), in_use: 1 });
        assert_eq!(fake.shelf.tier(7), Tier::Hot);
        drop(lease);
        assert_eq!((fake.shelf.tier(7), fake.on_device()), (Tier::Cold, 0));
        assert_eq!(fake.shelf.used(), Footprint::default());

        // Without an eviction they stay, until others need the room.
        drop(fake.lease(7).unwrap());
        assert_eq!(fake.shelf.tier(7), Tier::Hot);
        drop(fake.lease(4).unwrap());
        assert_eq!((fake.shelf.tier(7), fake.shelf.tier(4)), (Tier::Warm, Tier::Hot));
        assert_eq!(fake.on_device(), 4);
    }

    #[test]
    fn what_fails_may_be_tried_again() {
        let fake = Fake::new(10);
        let failed = fake.shelf.lease(5, needs(5), || Err(Failure::Fake));
        assert_eq!(failed.err(), Some(Failure::Fake));
        assert_eq!((fake.shelf.tier(5), fake.shelf.used()), (Tier::Cold, Footprint::default()));
        assert!(fake.lease(5).is_ok());
        assert!(matches!(fake.lease(11).err(), Some(Failure::NoRoom(NoRoom { key: 11, .. }))));
        assert_eq!(fake.on_device(), 5);
    }

    #[test]
    fn many_threads_never_hold_more_than_there_is() {
        let fake = Fake::new(10);
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let fake = fake.clone();
                thread::spawn(move || {
                    for turn in 0..50 {
                        let key = 3 + (i + turn) % 5;
                        assert_eq!(fake.lease(key).unwrap().1, key);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(fake.most.load(Ordering::SeqCst) <= 10);
        (3..8).for_each(|key| assert_eq!(fake.shelf.evict(key).in_use, 0));
        assert_eq!((fake.on_device(), fake.shelf.used()), (0, Footprint::default()));
    }
}

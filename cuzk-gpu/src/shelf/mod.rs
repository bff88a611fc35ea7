//! Parameters of several circuits, kept as near to a device as there is room, and lent to whoever proves.
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

/// Brings parameters to their tiers.
pub trait Loader: Send + Sync {
    /// What tells circuits apart.
    type Key: Copy + Ord + fmt::Debug + Send + Sync;
    /// Parameters in host memory.
    type Warm: Send + Sync;
    /// Parameters on a device.
    type Hot: Send + Sync;
    /// Why not.
    type Error: From<NoRoom<Self::Key>>;

    /// What a circuit takes in its tiers. Cheap.
    fn needs(&self, key: Self::Key) -> Result<Needs, Self::Error>;

    /// From files to host memory. Blocking.
    fn warm(&self, key: Self::Key) -> Result<Self::Warm, Self::Error>;

    /// From host memory to the device. Blocking.
    fn hot(&self, key: Self::Key, warm: &Arc<Self::Warm>) -> Result<Self::Hot, Self::Error>;
}

/// The parameters. Clones are the same shelf.
pub struct Shelf<L: Loader>(Arc<Inner<L>>);

struct Inner<L: Loader> {
    loader: L,
    state: Mutex<State<L>>,
    changed: Condvar,
}

struct State<L: Loader> {
    tiers: Tiers<L::Key>,
    warm: BTreeMap<L::Key, Arc<L::Warm>>,
    hot: BTreeMap<L::Key, Arc<L::Hot>>,
}

/// Parameters on the device, which stay there while this lives.
pub struct Lease<L: Loader> {
    inner: Arc<Inner<L>>,
    key: L::Key,
    /// Always there, but while it is dropped.
    hot: Option<Arc<L::Hot>>,
}

impl<L: Loader> Clone for Shelf<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: Loader> Shelf<L> {
    /// An empty shelf.
    pub fn new(loader: L, budget: Budget) -> Self {
        let state = State { tiers: Tiers::new(budget), warm: BTreeMap::new(), hot: BTreeMap::new() };
        Self(Arc::new(Inner { loader, state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Parameters on the device, loaded now if they are not there; others that nobody uses make room, those that were used
    /// longest ago first. Waits while all others are in use, and while somebody else loads the same.
    ///
    /// # Errors
    /// What the loader says, or [`NoRoom`] if they do not fit even alone.
    pub fn lease(&self, key: L::Key) -> Result<Lease<L>, L::Error> {
        let inner = &self.0;
        let needs = inner.loader.needs(key)?;
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
                    let warm = state.warm.get(&key).cloned();
                    drop(state);
                    inner.load(key, warm)?;
                    state = inner.lock();
                }
            }
        }
    }

    /// Frees a circuit's parameters in all tiers, at once or when nobody uses them any more.
    pub fn evict(&self, key: L::Key) -> Evicted {
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
    pub fn tier(&self, key: L::Key) -> Tier {
        self.0.lock().tiers.tier(key)
    }

    /// What is in use of the budget.
    pub fn used(&self) -> Footprint {
        self.0.lock().tiers.used()
    }
}

/// A load under way; when it ends without success, others may try.
struct Loading<'a, L: Loader> {
    inner: &'a Inner<L>,
    key: L::Key,
}

impl<L: Loader> Drop for Loading<'_, L> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        let tier = state.tiers.handle_load_ended(self.key);
        state.lower(self.key, tier);
        drop(state);
        self.inner.changed.notify_all();
    }
}

impl<L: Loader> Inner<L> {
    fn load(&self, key: L::Key, warm: Option<Arc<L::Warm>>) -> Result<(), L::Error> {
        let loading = Loading { inner: self, key };
        let warm = match warm {
            Some(warm) => warm,
            None => Arc::new(self.loader.warm(key)?),
        };
        let hot = Arc::new(self.loader.hot(key, &warm)?);
        let mut state = self.lock();
        state.warm.insert(key, warm);
        state.hot.insert(key, hot);
        state.tiers.handle_loaded(key);
        drop(state);
        drop(loading);
        Ok(())
    }

    /// No call of the loader runs under the lock, so a panic leaves the tables as they were.
    fn lock(&self) -> MutexGuard<'_, State<L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Loader> State<L> {
    /// Frees what is above a tier. Under the lock: nobody is to load into memory that is not free yet.
    fn lower(&mut self, key: L::Key, tier: Tier) {
        if tier < Tier::Hot {
            self.hot.remove(&key);
        }
        if tier < Tier::Warm {
            self.warm.remove(&key);
        }
    }
}

impl<L: Loader> Deref for Lease<L> {
    type Target = L::Hot;

    fn deref(&self) -> &L::Hot {
        self.hot.as_ref().expect("it is there until it is dropped")
    }
}

impl<L: Loader> Drop for Lease<L> {
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

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    /// Circuits of the size that they are called by; counts what is on the device.
    struct Fake {
        on_device: Arc<AtomicUsize>,
        most: AtomicUsize,
        fails: AtomicUsize,
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

    impl Loader for Fake {
        type Key = usize;
        type Warm = usize;
        type Hot = Counted;
        type Error = Failure;

        fn needs(&self, key: usize) -> Result<Needs, Failure> {
            let bytes = key as u64;
            Ok(Needs { warm: Footprint { device: 0, host: 1 }, hot: Footprint { device: bytes, host: 1 } })
        }

        fn warm(&self, key: usize) -> Result<usize, Failure> {
            Ok(key)
        }

        fn hot(&self, key: usize, warm: &Arc<usize>) -> Result<Counted, Failure> {
            assert_eq!(**warm, key);
            if self.fails.load(Ordering::SeqCst) == key {
                return Err(Failure::Fake);
            }
            let now = self.on_device.fetch_add(key, Ordering::SeqCst) + key;
            self.most.fetch_max(now, Ordering::SeqCst);
            Ok(Counted(self.on_device.clone(), key))
        }
    }

    fn shelf(device: u64) -> (Shelf<Fake>, Arc<AtomicUsize>) {
        let on_device = Arc::new(AtomicUsize::new(0));
        let fake = Fake { on_device: on_device.clone(), most: AtomicUsize::new(0), fails: AtomicUsize::new(0) };
        (Shelf::new(fake, Budget(Footprint { device, host: 3 })), on_device)
    }

    #[test]
    fn a_lease_keeps_and_frees() {
        let (shelf, on_device) = shelf(10);
        let lease = shelf.lease(7).unwrap();
        assert_eq!((lease.1, on_device.load(Ordering::SeqCst)), (7, 7));
        assert_eq!(shelf.evict(7), Evicted { tier: Tier::Hot, freed: Footprint::default(), in_use: 1 });
        assert_eq!(shelf.tier(7), Tier::Hot);
        drop(lease);
        assert_eq!((shelf.tier(7), on_device.load(Ordering::SeqCst)), (Tier::Cold, 0));
        assert_eq!(shelf.used(), Footprint::default());

        // Without an eviction they stay, until others need the room.
        drop(shelf.lease(7).unwrap());
        assert_eq!(shelf.tier(7), Tier::Hot);
        drop(shelf.lease(4).unwrap());
        assert_eq!((shelf.tier(7), shelf.tier(4)), (Tier::Warm, Tier::Hot));
        assert_eq!(on_device.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn what_fails_may_be_tried_again() {
        let (shelf, on_device) = shelf(10);
        shelf.0.loader.fails.store(5, Ordering::SeqCst);
        assert_eq!(shelf.lease(5).err(), Some(Failure::Fake));
        assert_eq!((shelf.tier(5), shelf.used()), (Tier::Cold, Footprint::default()));
        shelf.0.loader.fails.store(0, Ordering::SeqCst);
        assert!(shelf.lease(5).is_ok());
        assert!(matches!(shelf.lease(11).err(), Some(Failure::NoRoom(NoRoom { key: 11, .. }))));
        assert_eq!(on_device.load(Ordering::SeqCst), 5);
    }

    #[test]
    fn many_threads_never_hold_more_than_there_is() {
        let (shelf, on_device) = shelf(10);
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let shelf = shelf.clone();
                thread::spawn(move || {
                    for turn in 0..50 {
                        let key = 3 + (i + turn) % 5;
                        assert_eq!(shelf.lease(key).unwrap().1, key);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(shelf.0.loader.most.load(Ordering::SeqCst) <= 10);
        (3..8).for_each(|key| assert_eq!(shelf.evict(key).in_use, 0));
        assert_eq!((on_device.load(Ordering::SeqCst), shelf.used()), (0, Footprint::default()));
    }
}

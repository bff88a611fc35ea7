//! Which parameters are in which tier, and who makes room for whom. No memory is touched here: whoever drives a
//! [`Tiers`] does what its answers say, in their order.

use std::{collections::BTreeMap, fmt};

/// How near to a device parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// In files only.
    Cold,
    /// In host memory, in the host's form.
    Warm,
    /// On the device, or in page-locked memory that it copies from.
    Hot,
}

/// Bytes of both kinds of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Of the device.
    pub device: u64,
    /// Of the host.
    pub host: u64,
}

/// What a circuit's parameters take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// In tier [`Tier::Warm`].
    pub warm: Footprint,
    /// In tier [`Tier::Hot`], all that stays in host memory included.
    pub hot: Footprint,
}

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub Footprint);

/// What an eviction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The tier that they were in.
    pub tier: Tier,
    /// What was freed at once.
    pub freed: Footprint,
    /// Who still uses them, or loads them: when nobody does any more, they go.
    pub in_use: usize,
}

/// Parameters that do not fit, whoever makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the parameters of {key:?} need {} bytes of device memory and {} of host memory, of {} and {} that may be used \
     ([gpus] vram_limit, [memory] total_budget)",
    needed.device, needed.host, budget.device, budget.host
)]
pub struct NoRoom<K: fmt::Debug> {
    /// Which.
    pub key: K,
    /// What they need.
    pub needed: Footprint,
    /// What there is.
    pub budget: Footprint,
}

/// What is to be done for somebody who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<K> {
    /// They are there, and in use by one more.
    Ready,
    /// Ask again when something has changed.
    Wait,
    /// Lower these to these tiers, then load.
    Load {
        /// In this order.
        make_room: Vec<(K, Tier)>,
    },
}

/// The state of all parameters.
#[derive(Clone, Debug)]
pub struct Tiers<K> {
    budget: Footprint,
    entries: BTreeMap<K, Entry>,
    /// Counts uses.
    clock: u64,
}

/// One circuit's. Charged with the tier that it is in, or that it is being loaded to.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tier: Tier,
    loading: Option<Tier>,
    needs: Needs,
    users: usize,
    last_use: u64,
    evict_when_free: bool,
}

impl<K: Copy + Ord + fmt::Debug> Tiers<K> {
    /// All parameters are cold.
    pub fn new(Budget(budget): Budget) -> Self {
        Self { budget, entries: BTreeMap::new(), clock: 0 }
    }

    /// Somebody wants to use a circuit's parameters in a tier, and says what they need.
    ///
    /// # Errors
    /// They do not fit, even if all others made room.
    pub(super) fn ask(&mut self, key: K, tier: Tier, needs: Needs) -> Result<Step<K>, NoRoom<K>> {
        self.clock += 1;
        let fresh = Entry { tier: Tier::Cold, loading: None, needs, users: 0, last_use: 0, evict_when_free: false };
        let entry = self.entries.get(&key).copied().unwrap_or(fresh);
        if entry.loading.is_some() {
            return Ok(Step::Wait);
        }
        if entry.tier >= tier {
            let users = entry.users + 1;
            self.entries.insert(key, Entry { users, last_use: self.clock, ..entry });
            return Ok(Step::Ready);
        }
        let needed = needs.of(tier);
        if !needed.fits(self.budget) {
            return Err(NoRoom { key, needed, budget: self.budget });
        }
        let mut after = self.clone();
        after.entries.insert(key, Entry { loading: Some(tier), needs, last_use: self.clock, ..entry });
        Ok(match after.make_room(key) {
            Some(make_room) => {
                *self = after;
                Step::Load { make_room }
            }
            None => Step::Wait,
        })
    }

    /// A load has succeeded.
    pub(super) fn handle_loaded(&mut self, key: K) {
        if let Some(entry) = self.entries.get_mut(&key)
            && let Some(tier) = entry.loading.take()
        {
            entry.tier = tier;
        }
    }

    /// A load has ended, in whatever way. Returns the tier that they are in now.
    pub(super) fn handle_load_ended(&mut self, key: K) -> Tier {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.loading = None;
        }
        self.drop_if_unwanted(key);
        self.tier(key)
    }

    /// Somebody uses them no longer. `Some`: they are to be lowered to that tier now.
    pub(super) fn release(&mut self, key: K) -> Option<Tier> {
        let entry = self.entries.get_mut(&key)?;
        entry.users = entry.users.saturating_sub(1);
        self.drop_if_unwanted(key).then_some(Tier::Cold)
    }

    /// Somebody wants them gone. If they are in use, they go when they are not; if not, they are to be freed now.
    pub(super) fn evict(&mut self, key: K) -> Evicted {
        let Some(entry) = self.entries.get_mut(&key) else {
            return Evicted { tier: Tier::Cold, freed: Footprint::default(), in_use: 0 };
        };
        entry.evict_when_free = true;
        let Entry { tier, users, loading, .. } = *entry;
        let freed = self.entries[&key].charge();
        match self.drop_if_unwanted(key) {
            true => Evicted { tier, freed, in_use: 0 },
            false => Evicted { tier, freed: Footprint::default(), in_use: users + usize::from(loading.is_some()) },
        }
    }

    /// The tier of a circuit's parameters. While they are loaded: the one before.
    pub fn tier(&self, key: K) -> Tier {
        self.entries.get(&key).map_or(Tier::Cold, |entry| entry.tier)
    }

    /// What is in use.
    pub fn used(&self) -> Footprint {
        self.entries.values().map(Entry::charge).fold(Footprint::default(), Footprint::plus)
    }

    /// Lowers those that nobody uses, longest unused first, until all fit: to host memory if device memory is short, and
    /// if host memory is short to files. `None` if that is not enough as long as others are in use.
    fn make_room(&mut self, wanted: K) -> Option<Vec<(K, Tier)>> {
        let mut idle: Vec<_> = self
            .entries
            .iter()
            .filter(|(key, entry)| **key != wanted && entry.users == 0 && entry.loading.is_none())
            .map(|(key, entry)| (entry.last_use, *key))
            .collect();
        idle.sort_unstable();
        let mut lowered = Vec::new();
        for (to, from) in [(Tier::Warm, Tier::Hot), (Tier::Cold, Tier::Warm)] {
            for &(_, key) in &idle {
                let used = self.used();
                let short = if to == Tier::Warm { used.device > self.budget.device } else { !used.fits(self.budget) };
                let entry = self.entries.get_mut(&key)?;
                if short && entry.tier >= from {
                    entry.tier = to;
                    lowered.retain(|(lowered, _)| *lowered != key);
                    lowered.push((key, to));
                }
            }
        }
        self.entries.retain(|_, entry| entry.tier > Tier::Cold || entry.loading.is_some());
        self.used().fits(self.budget).then_some(lowered)
    }

    /// Forgets parameters that were to go, if nobody uses them, and those that are cold.
    fn drop_if_unwanted(&mut self, key: K) -> bool {
        let Some(entry) = self.entries.get(&key) else { return false };
        let free = entry.users == 0 && entry.loading.is_none();
        let gone = free && (entry.evict_when_free || entry.tier == Tier::Cold);
        if gone {
            self.entries.remove(&key);
        }
        gone
    }
}

impl Needs {
    fn of(self, tier: Tier) -> Footprint {
        match tier {
            Tier::Cold => Footprint::default(),
            Tier::Warm => self.warm,
            Tier::Hot => self.hot,
        }
    }
}

impl Footprint {
    fn plus(self, other: Self) -> Self {
        Self { device: self.device + other.device, host: self.host + other.host }
    }

    fn fits(self, budget: Self) -> bool {
        self.device <= budget.device && self.host <= budget.host
    }
}

impl Entry {
    fn charge(&self) -> Footprint {
        self.needs.of(self.loading.unwrap_or(self.tier))
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    fn needs(warm: u64, hot: [u64; 2]) -> Needs {
        let [device, host] = hot;
        Needs { warm: Footprint { device: 0, host: warm }, hot: Footprint { device, host } }
    }

    fn tiers(device: u64, host: u64) -> Tiers<u8> {
        Tiers::new(Budget(Footprint { device, host }))
    }

    /// Asks, loads if that is what it takes, and leaves.
    fn use_once(tiers: &mut Tiers<u8>, key: u8, needs: Needs) -> Vec<(u8, Tier)> {
        let mut lowered = Vec::new();
        while let Step::Load { make_room } = tiers.ask(key, Tier::Hot, needs).unwrap() {
            lowered = make_room;
            tiers.handle_loaded(key);
            tiers.handle_load_ended(key);
        }
        // `None`, unless somebody wanted them gone meanwhile.
        tiers.release(key);
        lowered
    }

    #[test]
    fn the_longest_unused_make_room_one_tier_at_a_time() {
        let mut tiers = tiers(10, 7);
        let small = needs(2, [5, 2]);
        assert_eq!(use_once(&mut tiers, 1, small), []);
        assert_eq!(use_once(&mut tiers, 2, small), []);
        assert_eq!(use_once(&mut tiers, 1, small), []);
        assert_eq!(use_once(&mut tiers, 3, small), [(2, Tier::Warm)]);
        assert_eq!((tiers.tier(1), tiers.tier(2), tiers.tier(3)), (Tier::Hot, Tier::Warm, Tier::Hot));
        assert_eq!(tiers.used(), Footprint { device: 10, host: 6 });
        // Now host memory is short as well: the longest unused goes to its file.
        assert_eq!(use_once(&mut tiers, 4, small), [(1, Tier::Warm), (2, Tier::Cold)]);
    }

    #[test]
    fn who_is_in_use_never_makes_room() {
        let mut tiers = tiers(10, 10);
        let Step::Load { .. } = tiers.ask(1, Tier::Hot, needs(1, [8, 1])).unwrap() else { panic!("it fits") };
        assert_eq!(tiers.ask(1, Tier::Hot, needs(1, [8, 1])), Ok(Step::Wait), "one load at a time");
        tiers.handle_loaded(1);
        tiers.handle_load_ended(1);
        assert_eq!(tiers.ask(1, Tier::Hot, needs(1, [8, 1])), Ok(Step::Ready));
        assert_eq!(tiers.ask(2, Tier::Hot, needs(1, [3, 1])), Ok(Step::Wait));
        assert_eq!(tiers.evict(1), Evicted { tier: Tier::Hot, freed: Footprint::default(), in_use: 1 });
        assert_eq!(tiers.release(1), Some(Tier::Cold));
        assert!(matches!(tiers.ask(2, Tier::Hot, needs(1, [3, 1])), Ok(Step::Load { .. })));
        let error = tiers.ask(3, Tier::Hot, needs(1, [11, 1])).unwrap_err().to_string();
        assert!(error.contains("11 bytes of device memory") && error.contains("of 10 and 10"), "{error}");
    }

    #[test]
    fn a_failed_load_leaves_nothing() {
        let mut tiers = tiers(10, 10);
        assert!(matches!(tiers.ask(1, Tier::Hot, needs(1, [8, 1])), Ok(Step::Load { .. })));
        assert_eq!(tiers.evict(1).in_use, 1);
        assert_eq!(tiers.handle_load_ended(1), Tier::Cold);
        assert_eq!(tiers.used(), Footprint::default());
        assert_eq!(tiers.evict(1), Evicted { tier: Tier::Cold, freed: Footprint::default(), in_use: 0 });
    }

    /// Random users: the budget is kept, nobody in use is lowered, and everybody is served some day.
    #[test]
    fn random_users_are_all_served_within_the_budget() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..200 {
            let budget = Footprint { device: rng.gen_range(10..30), host: rng.gen_range(10..30) };
            let mut tiers: Tiers<u8> = Tiers::new(Budget(budget));
            let needs: Vec<Needs> = (0..6)
                .map(|_| {
                    let warm = rng.gen_range(0..6);
                    needs(warm, [rng.gen_range(0..10), warm + rng.gen_range(0..4)])
                })
                .collect();
            let (mut using, mut loading): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
            for _ in 0..300 {
                let key = rng.gen_range(0..6u8);
                match rng.gen_range(0..5) {
                    0 | 1 => match tiers.ask(key, Tier::Hot, needs[usize::from(key)]).unwrap() {
                        Step::Ready => using.push(key),
                        Step::Wait => {}
                        Step::Load { make_room } => {
                            assert!(make_room.iter().all(|(k, _)| !using.contains(k) && !loading.contains(k)));
                            loading.push(key);
                        }
                    },
                    2 if !loading.is_empty() => {
                        let key = loading.swap_remove(rng.gen_range(0..loading.len()));
                        if rng.r#gen() {
                            tiers.handle_loaded(key);
                        }
                        tiers.handle_load_ended(key);
                    }
                    3 if !using.is_empty() => {
                        let key = using.swap_remove(rng.gen_range(0..using.len()));
                        tiers.release(key);
                    }
                    _ => {
                        let evicted = tiers.evict(key);
                        let users = using.iter().chain(&loading).filter(|k| **k == key).count();
                        assert_eq!(evicted.in_use, users);
                    }
                }
                assert!(tiers.used().fits(budget), "{tiers:?}");
                assert!(using.iter().all(|key| tiers.tier(*key) == Tier::Hot), "{tiers:?}");
            }
            for key in using {
                tiers.release(key);
            }
            for key in loading {
                tiers.handle_load_ended(key);
            }
            for key in 0..6 {
                use_once(&mut tiers, key, needs[usize::from(key)]);
            }
        }
    }
}

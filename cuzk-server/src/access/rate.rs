//! How often one client may ask: a token bucket each.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Clients that are remembered; beyond, those that have been quiet for longest are forgotten.
const MOST_CLIENTS: usize = 4096;
/// A bucket holds what this time brings, so that a burst is no offence.
const BURST: Duration = Duration::from_secs(2);

/// The buckets of all clients.
#[derive(Debug, Default)]
pub(super) struct Rates(HashMap<String, Bucket>);

/// Counted in time: the bucket is full from `full_at` on, and each request moves that by one interval.
#[derive(Debug)]
struct Bucket {
    full_at: Instant,
}

impl Rates {
    /// Takes one request of `client` from its bucket, or says how long it has to wait for the next. `rate` is in
    /// requests a second and not 0.
    pub(super) fn take(&mut self, client: &str, rate: u32, now: Instant) -> Result<(), Duration> {
        if !self.0.contains_key(client) {
            self.forget(now);
            self.0.insert(client.to_owned(), Bucket { full_at: now });
        }
        let Some(bucket) = self.0.get_mut(client) else { return Ok(()) };
        let next = bucket.full_at.max(now) + Duration::from_secs(1) / rate;
        let wait = next.saturating_duration_since(now + BURST);
        if wait.is_zero() {
            bucket.full_at = next;
            return Ok(());
        }
        // Told in whole milliseconds: whoever comes back after less is refused again.
        Err(Duration::from_millis(wait.as_nanos().div_ceil(1_000_000) as u64))
    }

    /// Makes room for one more.
    fn forget(&mut self, now: Instant) {
        if self.0.len() < MOST_CLIENTS {
            return;
        }
        // A full bucket is as good as none.
        self.0.retain(|_, bucket| bucket.full_at > now);
        if self.0.len() >= MOST_CLIENTS
            && let Some(oldest) = self.0.iter().min_by_key(|(_, b)| b.full_at).map(|(client, _)| client.clone())
        {
            self.0.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut rates = Rates::default();
        let begin = Instant::now();
        let burst = (0..100).take_while(|_| rates.take("a", 10, begin).is_ok()).count();
        assert_eq!(burst, 20);
        assert_eq!(rates.take("a", 10, begin), Err(Duration::from_millis(100)));
        assert!(rates.take("b", 10, begin).is_ok(), "another client's bucket is its own");
        let almost = begin + Duration::from_micros(99_999);
        assert_eq!(rates.take("a", 10, almost), Err(Duration::from_millis(1)), "never told to come back at once");
        let later = begin + Duration::from_millis(100);
        assert!(rates.take("a", 10, later).is_ok());
        assert!(rates.take("a", 10, later).is_err());
        // After a long rest there is one burst, not many.
        let rested = begin + Duration::from_secs(3600);
        assert_eq!((0..100).take_while(|_| rates.take("a", 10, rested).is_ok()).count(), 20);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut rates = Rates::default();
        let now = Instant::now();
        for i in 0..2 * MOST_CLIENTS {
            assert!(rates.take(&i.to_string(), 1, now).is_ok());
        }
        assert_eq!(rates.0.len(), MOST_CLIENTS);
        assert!(rates.take("x", 1, now + Duration::from_secs(9)).is_ok());
        assert_eq!(rates.0.len(), 1, "quiet clients are forgotten");
    }
}

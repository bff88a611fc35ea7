//! Job ids as clients see them: unique across restarts, and told apart from those of an earlier life at once.

use crate::core::job::JobKey;

/// Makes and reads the job ids of one life of the daemon, or of one store.
#[derive(Debug)]
pub(super) struct JobIds {
    prefix: String,
}

impl JobIds {
    /// Ids of jobs in memory only, for a life that began at a time (milliseconds since 1970) and drew a random number.
    /// Either alone would do as long as the clock is right or the generator good; neither is trusted alone.
    pub(super) fn new(unix_millis: u64, random: u64) -> Self {
        Self::of_store(format!("{unix_millis:x}-{random:016x}"))
    }

    /// Ids of jobs in a store, which outlive the process.
    pub(super) fn of_store(prefix: String) -> Self {
        Self { prefix }
    }

    /// The id of a job.
    pub(super) fn text(&self, key: JobKey) -> String {
        format!("{}-{}", self.prefix, key.0)
    }

    /// The job with an id, if the id is of this life.
    pub(super) fn parse(&self, text: &str) -> Option<JobKey> {
        let number = text.strip_prefix(self.prefix.as_str())?.strip_prefix('-')?;
        let key = JobKey(number.parse().ok()?);
        // Only the one way we write it: "+1" and "01" parse too.
        (self.text(key) == text).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_and_only_ours_do() {
        let (ids, next_life) = (JobIds::new(1000, 7), JobIds::new(1001, 7));
        let id = ids.text(JobKey(12));
        assert_eq!(ids.parse(&id), Some(JobKey(12)));
        assert_eq!(next_life.parse(&id), None);
        assert_eq!(JobIds::new(1000, 8).parse(&id), None);
        for wrong in ["", "12", &id.replace("-12", "-012"), &id.replace("-12", "-+12"), &id[..id.len() - 2]] {
            assert_eq!(ids.parse(wrong), None, "{wrong}");
        }
    }
}

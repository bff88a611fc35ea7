//! What is shown: the port behind which an engine stands.

use std::fmt;

use serde_json::Value;
use tokio::sync::watch;

use super::picture;
use crate::{
    engine::{Engine, Lifecycle, view::EngineView},
    proving::Proving,
};

/// What can be shown. Every answer comes from memory, within milliseconds.
pub trait Source: Send + Sync + 'static {
    /// All there is to see as JSON, with what happened since a number; and the number to go on from. 0 is the beginning.
    fn picture(&self, since: u64) -> (Value, u64);

    /// Counters and histograms in Prometheus text exposition format.
    fn metrics_text(&self) -> String;

    /// Whether jobs are taken and proven, or why not, in a line.
    fn readiness(&self) -> Result<(), String>;

    /// A number that rises with every change that could be seen.
    fn changes(&self) -> watch::Receiver<u64>;
}

impl fmt::Debug for dyn Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl<P: Proving> Source for Engine<P> {
    fn picture(&self, since: u64) -> (Value, u64) {
        picture::of_engine(self, since)
    }

    fn metrics_text(&self) -> String {
        Engine::metrics_text(self)
    }

    fn readiness(&self) -> Result<(), String> {
        readiness(&self.view())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        Engine::changes(self)
    }
}

fn readiness(view: &EngineView) -> Result<(), String> {
    match &view.status.lifecycle {
        Lifecycle::Starting(what) => return Err(format!("starting: {what}")),
        Lifecycle::Draining => return Err("draining: the daemon is about to end".to_owned()),
        Lifecycle::Serving => {}
    }
    if let Some(trouble) = view.store.as_ref().and_then(|store| store.trouble.as_ref()) {
        return Err(format!("the job store takes no jobs: {trouble}"));
    }
    let mut fences = view.devices.iter().map(|device| device.fence.as_ref());
    match fences.clone().all(|fence| fence.is_some()) {
        true => {
            let why = fences.next().flatten().map_or("there is none", |(_, reason)| reason);
            Err(format!("no device gets work: {why}"))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{EngineConfig, engine::testing::Fake, store::StoreStatus};

    #[tokio::test]
    async fn ready_is_who_takes_jobs_and_can_prove_them() {
        let engine = Engine::start(EngineConfig::default(), Fake::new(2));
        let view = engine.view();
        assert_eq!(readiness(&view), Ok(()));
        let with = |change: &dyn Fn(&mut EngineView)| {
            let mut changed = view.clone();
            change(&mut changed);
            readiness(&changed).map_err(|why| why.split(':').next_back().unwrap_or_default().trim().to_owned())
        };
        let fence = |reason: &str| Some((SystemTime::now(), reason.to_owned()));
        assert_eq!(with(&|v| v.status.lifecycle = Lifecycle::Starting("loading".into())), Err("loading".into()));
        assert_eq!(with(&|v| v.status.lifecycle = Lifecycle::Draining), Err("the daemon is about to end".into()));
        assert_eq!(with(&|v| v.devices[1].fence = fence("lost")), Ok(()), "the other device proves");
        assert_eq!(with(&|v| v.devices.iter_mut().for_each(|d| d.fence = fence("lost"))), Err("lost".into()));
        assert_eq!(with(&|v| v.devices.clear()), Err("there is none".into()));
        let trouble = StoreStatus { trouble: Some("disk full".into()), ..StoreStatus::default() };
        assert_eq!(with(&|v| v.store = Some(trouble.clone())), Err("disk full".into()));
    }
}

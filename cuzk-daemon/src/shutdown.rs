//! SIGTERM and SIGINT: the first asks to drain, the second to stop at once.

use std::io;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// What has been asked of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// To go on.
    Nothing,
    /// To take no new jobs, finish the running ones, and end.
    Drain,
    /// To end now.
    Stop,
}

/// Lets tasks wait for what is asked of the daemon. Clones see the same.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Asked>);

/// Asks; each call asks for more.
#[derive(Debug)]
pub struct Trigger(watch::Sender<Asked>);

/// A trigger and what it pulls, for daemons that other code in this process stops.
pub fn manual() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(Asked::Nothing);
    (Trigger(sender), Shutdown(receiver))
}

/// Listens for the signals from now on, in a task of the current runtime.
pub fn on_signals() -> io::Result<Shutdown> {
    let (trigger, shutdown) = manual();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            match trigger.ask() {
                Asked::Stop => tracing::warn!("{name} again: stopping at once"),
                _ => tracing::info!("{name}: draining; another signal stops at once"),
            }
        }
    });
    Ok(shutdown)
}

impl Trigger {
    /// Asks for a drain, or, if that has been asked for, for a stop. Returns what is asked for now.
    pub fn ask(&self) -> Asked {
        self.0.send_modify(|asked| {
            *asked = match asked {
                Asked::Nothing => Asked::Drain,
                Asked::Drain | Asked::Stop => Asked::Stop,
            }
        });
        *self.0.borrow()
    }
}

impl Shutdown {
    /// Ends when a drain (or more) is asked for. If the trigger is dropped, nobody can ask any more: never.
    pub async fn drain(&mut self) {
        self.at_least(Asked::Drain).await;
    }

    /// Ends when a stop is asked for.
    pub async fn stop(&mut self) {
        self.at_least(Asked::Stop).await;
    }

    async fn at_least(&mut self, least: Asked) {
        if self.0.wait_for(|asked| *asked >= least).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_drains_and_the_second_stops() {
        let (trigger, shutdown) = manual();
        assert_eq!(trigger.ask(), Asked::Drain);
        shutdown.clone().drain().await;
        assert_eq!(trigger.ask(), Asked::Stop);
        shutdown.clone().stop().await;
        // A stop is also a drain, whoever comes late.
        shutdown.clone().drain().await;
        assert_eq!(trigger.ask(), Asked::Stop);
    }

    #[tokio::test]
    async fn a_drain_is_no_stop() {
        let (trigger, mut shutdown) = manual();
        trigger.ask();
        let stopped = tokio::select! {
            biased;
            () = shutdown.stop() => true,
            () = tokio::task::yield_now() => false,
        };
        assert!(!stopped);
    }
}

//! `watch`: a running daemon's devices and jobs, live.

use std::{io::IsTerminal, pin::pin, thread};

use console::{Key, Term};
use cuzk_proto::v1::{WatchStatusRequest, WatchStatusResponse};
use tokio::sync::oneshot;

use super::{status, text};
use crate::{
    cli::WatchArgs,
    client,
    exit::{Exit, Failure},
};

/// Draws each picture over the one before; without a terminal, prints a line each. Ends with the daemon, with Ctrl-C,
/// and in a terminal with q.
pub(super) async fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let target = &args.client.addr;
    let asked = client::open(&args.client).await?.watch_status(WatchStatusRequest { jobs: args.jobs }).await;
    let failed = |status: &tonic::Status| client::refused("watch the daemon", target, status);
    let mut pictures = asked.map_err(|status| failed(&status))?.into_inner();
    let mut screen = Screen::new();
    let mut quit = pin!(screen.quit_key());
    loop {
        let next = tokio::select! {
            next = pictures.message() => next.map_err(|status| failed(&status))?,
            _ = tokio::signal::ctrl_c() => break,
            () = &mut quit => break,
        };
        let Some(picture) = next else {
            eprintln!("the daemon has stopped");
            break;
        };
        screen.draw(&picture).map_err(|e| Failure::new(Exit::Failure, format!("cannot write: {e}")))?;
    }
    Ok(())
}

/// Where pictures go.
struct Screen {
    term: Option<Term>,
    /// Lines of the picture that is there.
    lines: usize,
}

impl Screen {
    fn new() -> Self {
        let both = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        Self { term: both.then(Term::buffered_stdout), lines: 0 }
    }

    fn draw(&mut self, picture: &WatchStatusResponse) -> std::io::Result<()> {
        let Some(term) = &self.term else {
            println!("{}", line(picture));
            return Ok(());
        };
        let (rows, columns) = term.size();
        let text = fitted(&screenful(picture, text::now_ms()), usize::from(rows), usize::from(columns));
        term.clear_last_lines(self.lines)?;
        self.lines = text.len();
        text.iter().try_for_each(|line| term.write_line(line))?;
        term.flush()
    }

    /// Resolves when q is pressed; never without a terminal. The thread that reads keys ends with the process.
    fn quit_key(&self) -> impl Future<Output = ()> + use<> {
        let (pressed, quit) = oneshot::channel();
        if let Some(term) = self.term.clone() {
            thread::spawn(move || {
                while let Ok(key) = term.read_key() {
                    if matches!(key, Key::Char('q' | 'Q') | Key::CtrlC) {
                        // Nobody listens any more if the command is at its end.
                        let _ = pressed.send(());
                        return;
                    }
                }
            });
        }
        async move {
            if quit.await.is_err() {
                std::future::pending().await
            }
        }
    }
}

/// A picture in a line, for logs and pipes.
fn line(picture: &WatchStatusResponse) -> String {
    let status = picture.status.clone().unwrap_or_default();
    let sum = |f: fn(&cuzk_proto::v1::QueueStatus) -> u32| status.queues.iter().map(f).sum::<u32>();
    let busy: usize = status.gpus.iter().map(|gpu| gpu.busy_workers.len()).sum();
    format!(
        "{} queued={} running={} busy_workers={busy} completed={} failed={}",
        client::one_line(&status.state),
        sum(|queue| queue.pending),
        sum(|queue| queue.in_progress),
        status.total_proofs_completed,
        status.total_proofs_failed
    )
}

/// A picture for a terminal of any size.
fn screenful(picture: &WatchStatusResponse, now_ms: u64) -> String {
    let status = picture.status.clone().unwrap_or_default();
    let jobs = text::jobs(&picture.jobs, now_ms);
    format!("{}\n{jobs}\nq quits\n", status::as_table(&status, now_ms))
}

/// The lines of a text that fit a terminal: longer ones are cut, and those before the last one are left out.
fn fitted(text: &str, rows: usize, columns: usize) -> Vec<String> {
    let fitting = rows.saturating_sub(1).max(1);
    let mut lines: Vec<_> = text.lines().collect();
    if lines.len() > fitting {
        // The last one says how to leave.
        lines.drain(fitting - 1..lines.len() - 1);
    }
    lines.into_iter().map(|line| line.chars().take(columns.max(1)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{GetStatusResponse, Job, QueueStatus};

    use super::*;

    fn sample() -> WatchStatusResponse {
        let queue = |pending, in_progress| QueueStatus { pending, in_progress, ..QueueStatus::default() };
        let status = GetStatusResponse {
            state: "serving".into(),
            queues: vec![queue(2, 1), queue(1, 0)],
            total_proofs_completed: 7,
            ..GetStatusResponse::default()
        };
        let jobs = vec![Job { job_id: "s-1".into(), ..Job::default() }];
        WatchStatusResponse { status: Some(status), jobs, revision: 1 }
    }

    #[test]
    fn a_line_counts_over_all_kinds() {
        assert_eq!(line(&sample()), "serving queued=3 running=1 busy_workers=0 completed=7 failed=0");
        assert!(line(&WatchStatusResponse::default()).contains("queued=0"));
    }

    #[test]
    fn a_screen_is_never_larger_than_the_terminal() {
        let text = screenful(&sample(), 0);
        assert!(text.contains("s-1") && text.ends_with("q quits\n"), "{text}");
        let lines = fitted(&text, 4, 10);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.chars().count() <= 10));
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("state     ", "q quits"));
        assert_eq!(fitted(&text, 0, 0).len(), 1);
    }
}

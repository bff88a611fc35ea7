//! Real signals. A file, and so a process, of its own: they reach the whole process.

use std::process::Command;

use cuzk_daemon::shutdown;

fn send(signal: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {}", std::process::id())]).status();
    assert!(status.expect("a shell").success());
}

#[tokio::test]
async fn sigterm_drains_and_sigint_after_it_stops() {
    let mut asked = shutdown::on_signals().expect("signals can be handled");
    send("TERM");
    asked.drain().await;
    send("INT");
    asked.stop().await;
}

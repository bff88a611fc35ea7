//! Tells systemd how the daemon is doing (`Type=notify`): one datagram to the socket that `NOTIFY_SOCKET` names.

use std::{
    env,
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Able to prove.
    Ready,
    /// On the way down.
    Stopping,
    /// A line for `systemctl status`.
    Status(String),
}

/// Tells the supervisor, if there is one. A supervisor that cannot be reached is logged and otherwise ignored: proving
/// goes on without it.
pub fn notify(state: &State) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!("cannot notify the supervisor at {}: {error}", socket.display());
    }
}

fn send(socket: &OsStr, state: &State) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    // A supervisor that does not read must not hold up the daemon.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(message(state).as_bytes(), &address(socket)?)?;
    Ok(())
}

/// A path, or a name in the abstract namespace, which is written with an `@` in front.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(socket),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor an abstract name")),
    }
}

fn message(state: &State) -> String {
    match state {
        State::Ready => "READY=1\n".into(),
        State::Stopping => "STOPPING=1\n".into(),
        // A line break would begin another assignment.
        State::Status(text) => format!("STATUS={}\n", text.replace('\n', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(receiver: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = receiver.recv(&mut buffer).expect("a datagram");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_path_is_told() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("notify");
        let receiver = UnixDatagram::bind(&path).expect("free");
        send(path.as_os_str(), &State::Ready).expect("sent");
        assert_eq!(received(&receiver), "READY=1\n");
    }

    #[test]
    fn an_abstract_name_is_told() {
        let name = format!("cuzk-notify-test-{}", std::process::id());
        let bound = SocketAddr::from_abstract_name(&name).expect("legal");
        let receiver = UnixDatagram::bind_addr(&bound).expect("free");
        send(OsStr::new(&format!("@{name}")), &State::Stopping).expect("sent");
        assert_eq!(received(&receiver), "STOPPING=1\n");
    }

    #[test]
    fn a_status_stays_one_line() {
        assert_eq!(message(&State::Status("a\nREADY=1".into())), "STATUS=a READY=1\n");
    }

    #[test]
    fn nonsense_is_an_error_and_no_panic() {
        assert!(send(OsStr::new("relative"), &State::Ready).is_err());
        assert!(send(OsStr::new("/nonexistent/socket"), &State::Ready).is_err());
    }
}

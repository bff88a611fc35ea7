//! Sockets that the supervisor has bound already (systemd's socket activation): descriptors from 3 on, as many as
//! `LISTEN_FDS` says, if `LISTEN_PID` names this process. They take the place of `daemon.listen`.

use std::{
    io,
    net::TcpListener,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixListener,
    },
};

use super::Listener;

/// The first descriptor that is passed.
const FIRST: RawFd = 3;
/// More is a mistake, not a configuration.
const MOST: RawFd = 64;

/// Takes the sockets that this process was started with, if any. To be called once, before anything else opens files.
///
/// # Errors
/// If a descriptor is not a listening socket over TCP or unix, or the variables make no sense.
pub fn inherited() -> io::Result<Vec<Listener>> {
    let variable = |name: &str| std::env::var(name).ok();
    let count = count(variable("LISTEN_PID").as_deref(), variable("LISTEN_FDS").as_deref(), std::process::id())?;
    (FIRST..FIRST + count)
        .map(|fd| {
            // SAFETY: fcntl on a number touches no memory; an error says that nothing is open there.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: it is open, and by the protocol ours alone: the supervisor passed it, and nobody took it before.
            listener(unsafe { OwnedFd::from_raw_fd(fd) })
        })
        .collect()
}

/// How many descriptors were passed to the process with this id.
fn count(for_pid: Option<&str>, fds: Option<&str>, pid: u32) -> io::Result<RawFd> {
    let (Some(for_pid), Some(fds)) = (for_pid, fds) else { return Ok(0) };
    // Left over from whoever started us: meant for another process.
    if for_pid.parse() != Ok(pid) {
        return Ok(0);
    }
    match fds.parse() {
        Ok(count) if (0..=MOST).contains(&count) => Ok(count),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("LISTEN_FDS is {fds:?}, no number up to {MOST}"))),
    }
}

fn listener(fd: OwnedFd) -> io::Result<Listener> {
    if option(fd.as_fd(), libc::SO_ACCEPTCONN)? == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a socket, but does not listen"));
    }
    match option(fd.as_fd(), libc::SO_DOMAIN)? {
        libc::AF_INET | libc::AF_INET6 => {
            let listener = TcpListener::from(fd);
            listener.set_nonblocking(true)?;
            Ok(Listener::Tcp(listener))
        }
        libc::AF_UNIX => {
            let listener = UnixListener::from(fd);
            listener.set_nonblocking(true)?;
            Ok(Listener::Unix(listener, None))
        }
        other => Err(io::Error::new(io::ErrorKind::Unsupported, format!("its address family is {other}"))),
    }
}

/// An integer option of a socket.
fn option(fd: BorrowedFd<'_>, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers are to locals of the sizes that are told.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_what_is_meant_for_this_process_counts() {
        assert_eq!(count(None, None, 7).expect("none"), 0);
        assert_eq!(count(Some("7"), Some("2"), 7).expect("two"), 2);
        assert_eq!(count(Some("8"), Some("2"), 7).expect("not ours"), 0);
        assert_eq!(count(Some("x"), Some("2"), 7).expect("not ours"), 0);
        for fds in ["", "-1", "65", "two"] {
            assert!(count(Some("7"), Some(fds), 7).is_err(), "{fds}");
        }
    }

    #[test]
    fn tcp_and_unix_are_told_apart_and_others_refused() {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = tcp.local_addr().expect("bound");
        let Ok(Listener::Tcp(taken)) = listener(tcp.into()) else { panic!("it is TCP") };
        assert_eq!(taken.local_addr().expect("bound"), address);

        let dir = tempfile::tempdir().expect("a temporary directory");
        let unix = UnixListener::bind(dir.path().join("s")).expect("free");
        assert!(matches!(listener(unix.into()), Ok(Listener::Unix(_, None))));

        let (connected, _other) = UnixStream::pair().expect("two sockets");
        assert!(listener(connected.into()).is_err(), "it does not listen");
        let file = std::fs::File::open("/dev/null").expect("is there");
        assert!(listener(file.into()).is_err(), "no socket");
    }
}

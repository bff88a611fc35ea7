//! Taking a unix socket's path: never from a living daemon, never from another kind of file, and never so that
//! anybody can connect before the permissions are right.
//!
//! 1. Lock `PATH.lock` (flock: the kernel drops it with the process, so it cannot go stale). The lock file stays
//!    behind on exit; removing it would let two daemons hold locks on two files of the same name.
//! 2. Look at `PATH`. Nothing: good. No socket: refuse. A socket: connect to it. Refused means that its owner is
//!    gone, and it is removed; anything else means that somebody is, or may be, there.
//! 3. Bind in a fresh directory beside it that only we can enter, set owner and mode there, and rename the socket to
//!    `PATH`. A umask would do for the mode too, but it belongs to the whole process.
//! 4. On exit remove `PATH` only if it is still the inode that we made.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::{
        fd::AsRawFd,
        unix::{
            fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process,
};

use nix::unistd::{Group, User};

use super::{BindError, Endpoint};

/// Whose a socket is, and who may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Permission bits.
    pub mode: u32,
    /// The user it is given to, by name or id.
    pub owner: Option<String>,
    /// The group it is given to, by name or id.
    pub group: Option<String>,
}

impl Permissions {
    /// The daemon's own user and group, with these bits.
    pub fn mode(mode: u32) -> Self {
        Self { mode, owner: None, group: None }
    }
}

/// Owns a bound socket's path and the lock beside it; dropping it removes the socket if it is still ours.
#[derive(Debug)]
pub struct UnixGuard {
    path: PathBuf,
    /// Device and inode of the socket that we made.
    identity: (u64, u64),
    /// Held, not read: closing the file releases the lock, after the socket is gone.
    _lock: File,
}

impl UnixGuard {
    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixGuard {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // Nobody is left to tell if this fails, and the next daemon removes a dead socket.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Binds a listening, non-blocking socket with these permissions at an absolute path.
pub fn bind(path: &Path, permissions: &Permissions) -> Result<(UnixListener, UnixGuard), BindError> {
    let refused = |source| BindError::Refused { endpoint: Endpoint::Unix(path.to_owned()), source };
    let lock = take_lock(path)?;
    clear(path)?;
    let (listener, identity) = bind_and_rename(path, permissions).map_err(refused)?;
    let guard = UnixGuard { path: path.to_owned(), identity, _lock: lock };
    Ok((listener, guard))
}

fn take_lock(path: &Path) -> Result<File, BindError> {
    let lock_path = beside(path, ".lock");
    let refused = |source: io::Error| BindError::Refused {
        endpoint: Endpoint::Unix(path.to_owned()),
        source: io::Error::new(source.kind(), format!("lock file {}: {source}", lock_path.display())),
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        // A link planted here must not make us write elsewhere.
        .custom_flags(libc::O_NOFOLLOW)
        .open(&lock_path)
        .map_err(refused)?;
    // SAFETY: the descriptor is open for as long as `file` lives, and flock touches no memory of ours.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(refused(error));
        }
        let mut holder = String::new();
        let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
        return Err(BindError::InUse {
            endpoint: Endpoint::Unix(path.to_owned()),
            holder: match known {
                true => format!("process {} holds {}", holder.trim(), lock_path.display()),
                false => format!("another process holds {}", lock_path.display()),
            },
        });
    }
    // For the message above only; the lock is the truth.
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", process::id()));
    written.map_err(refused)?;
    Ok(file)
}

/// Makes the path free, or says why not.
fn clear(path: &Path) -> Result<(), BindError> {
    let endpoint = || Endpoint::Unix(path.to_owned());
    let refused = |source| BindError::Refused { endpoint: endpoint(), source };
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(refused(source)),
    };
    if !kind.is_socket() {
        return Err(BindError::NotASocket {
            path: path.to_owned(),
            what: match () {
                () if kind.is_dir() => "directory",
                () if kind.is_symlink() => "symbolic link",
                () if kind.is_file() => "regular file",
                () => "special file",
            },
        });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(BindError::InUse { endpoint: endpoint(), holder: "another process answers there".into() }),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(refused),
        // No permission, a full backlog, a datagram socket: somebody may be there.
        Err(source) => Err(refused(source)),
    }
}

fn bind_and_rename(path: &Path, permissions: &Permissions) -> io::Result<(UnixListener, (u64, u64))> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let private = tempfile::Builder::new().prefix(".cuzk").tempdir_in(parent)?;
    let hidden = private.path().join("s");
    let listener = UnixListener::bind(&hidden).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidInput => io::Error::new(e.kind(), PATH_TOO_LONG),
        _ => e,
    })?;
    listener.set_nonblocking(true)?;
    // The owner first: a change of owner may clear bits.
    give(&hidden, permissions)?;
    fs::set_permissions(&hidden, fs::Permissions::from_mode(permissions.mode))?;
    let identity = identity(&hidden)?;
    fs::rename(&hidden, path)?;
    Ok((listener, identity))
}

/// Gives a socket to the user and group that are named.
fn give(path: &Path, permissions: &Permissions) -> io::Result<()> {
    let uid = permissions.owner.as_deref().map(|name| {
        id_of("daemon.socket_owner", name, User::from_name(name).map(|found| found.map(|user| user.uid.as_raw())))
    });
    let gid = permissions.group.as_deref().map(|name| {
        id_of("daemon.socket_group", name, Group::from_name(name).map(|found| found.map(|group| group.gid.as_raw())))
    });
    let (uid, gid) = (uid.transpose()?, gid.transpose()?);
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    chown(path, uid, gid).map_err(|e| {
        let told = "to give it to daemon.socket_owner and daemon.socket_group the daemon must be root, or for a group its member";
        io::Error::new(e.kind(), format!("{e}; {told}"))
    })
}

/// The id of a name in the system's tables; a number stands for itself.
fn id_of(key: &str, name: &str, found: nix::Result<Option<u32>>) -> io::Result<u32> {
    match (found?, name.parse()) {
        (Some(id), _) | (None, Ok(id)) => Ok(id),
        (None, Err(_)) => Err(io::Error::new(io::ErrorKind::NotFound, format!("{key}: there is no {name:?} here"))),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|m| (m.dev(), m.ino()))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// 108 bytes of `sun_path`, less its end mark and the `/.cuzkXXXXXX/s` of the private directory.
const PATH_TOO_LONG: &str = "the path is too long for a unix socket; keep its directory below 90 bytes";

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a temporary directory");
            Self { dir }
        }

        fn socket(&self) -> PathBuf {
            self.dir.path().join("cuzk.sock")
        }
    }

    fn bind(path: &Path, mode: u32) -> Result<(UnixListener, UnixGuard), BindError> {
        super::bind(path, &Permissions::mode(mode))
    }

    #[test]
    fn a_socket_is_given_to_whom_it_shall_belong() {
        let place = Place::new();
        let own = identity_of(place.dir.path());
        let named = |owner: &str, group: &str| {
            let permissions = Permissions { mode: 0o640, owner: Some(owner.into()), group: Some(group.into()) };
            super::bind(&place.socket(), &permissions)
        };
        // Its own user and group anybody may name; others only root.
        let (uid, gid) = if own.0 == 0 { (12_345, 54_321) } else { own };
        let bound = named(&uid.to_string(), &gid.to_string()).expect("allowed");
        assert_eq!((identity_of(&place.socket()), mode(&place.socket())), ((uid, gid), 0o640));
        drop(bound);
        if own.0 != 0 {
            let error = named("0", "0").expect_err("not root").to_string();
            assert!(error.contains("must be root"), "{error}");
        }
        let error = named("no-such-user-here", "0").expect_err("unknown").to_string();
        assert!(error.contains("daemon.socket_owner: there is no \"no-such-user-here\""), "{error}");
        assert!(identity(&place.socket()).is_err(), "nothing is left of a socket that nobody owns");
    }

    fn identity_of(path: &Path) -> (u32, u32) {
        fs::symlink_metadata(path).map(|m| (m.uid(), m.gid())).expect("is there")
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("is there").mode() & 0o7777
    }

    #[test]
    fn a_fresh_socket_has_its_mode_and_takes_connections() {
        let place = Place::new();
        for bits in [0o660, 0o600, 0o666] {
            let (listener, guard) = bind(&place.socket(), bits).expect("free");
            assert_eq!(mode(&place.socket()), bits);
            UnixStream::connect(guard.path()).expect("it listens");
            drop((listener, guard));
        }
        let left: Vec<_> = fs::read_dir(place.dir.path()).expect("readable").flatten().collect();
        assert_eq!(left.len(), 1, "only the lock file stays: {left:?}");
    }

    #[test]
    fn a_dead_socket_is_replaced() {
        let place = Place::new();
        drop(UnixListener::bind(place.socket()).expect("free"));
        identity(&place.socket()).expect("a dropped listener leaves its file");
        let (_listener, guard) = bind(&place.socket(), 0o660).expect("dead sockets are removed");
        assert!(UnixStream::connect(place.socket()).is_ok());
        drop(guard);
        assert!(identity(&place.socket()).is_err_and(|e| e.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn a_live_socket_of_a_program_without_our_lock_is_refused() {
        let place = Place::new();
        let _other = UnixListener::bind(place.socket()).expect("free");
        let error = bind(&place.socket(), 0o660).expect_err("alive");
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        assert!(UnixStream::connect(place.socket()).is_ok(), "it was left alone");
    }

    #[test]
    fn a_second_daemon_is_refused_by_the_lock_and_told_the_first() {
        let place = Place::new();
        let (listener, guard) = bind(&place.socket(), 0o660).expect("free");
        // Even where the socket file is gone, the lock tells.
        fs::remove_file(place.socket()).expect("ours");
        let error = bind(&place.socket(), 0o660).expect_err("locked").to_string();
        assert!(error.contains(&format!("process {}", process::id())), "{error}");
        drop((listener, guard));
        assert!(bind(&place.socket(), 0o660).is_ok(), "released with its holder");
    }

    #[test]
    fn what_is_no_socket_is_refused_and_left_alone() {
        let place = Place::new();
        fs::write(place.socket(), "precious").expect("writable");
        let error = bind(&place.socket(), 0o660).expect_err("a file").to_string();
        assert!(error.contains("regular file"), "{error}");
        assert_eq!(fs::read(place.socket()).expect("still there"), b"precious");

        fs::remove_file(place.socket()).expect("ours");
        std::os::unix::fs::symlink("/dev/null", place.socket()).expect("writable");
        let error = bind(&place.socket(), 0o660).expect_err("a link").to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }

    #[test]
    fn only_our_own_socket_is_removed_on_exit() {
        let place = Place::new();
        let (listener, guard) = bind(&place.socket(), 0o660).expect("free");
        fs::remove_file(place.socket()).expect("ours");
        let _successor = UnixListener::bind(place.socket()).expect("free again");
        drop((listener, guard));
        assert!(UnixStream::connect(place.socket()).is_ok(), "the successor keeps its socket");
    }

    #[test]
    fn a_planted_lock_link_is_not_followed() {
        let place = Place::new();
        let victim = place.dir.path().join("victim");
        fs::write(&victim, "precious").expect("writable");
        std::os::unix::fs::symlink(&victim, beside(&place.socket(), ".lock")).expect("writable");
        assert!(bind(&place.socket(), 0o660).is_err());
        assert_eq!(fs::read(&victim).expect("still there"), b"precious");
    }

    #[test]
    fn missing_directories_and_long_paths_are_explained() {
        let place = Place::new();
        let lost = place.dir.path().join("no/such/cuzk.sock");
        assert!(matches!(bind(&lost, 0o660), Err(BindError::Refused { .. })));

        let long = place.dir.path().join("d".repeat(100));
        fs::create_dir(&long).expect("writable");
        let error = bind(&long.join("s"), 0o660).expect_err("too long").to_string();
        assert!(error.contains("too long"), "{error}");
    }
}

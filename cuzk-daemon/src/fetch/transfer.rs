//! One file, from the first request to its place.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    answer::{Fault, Verdict, judge},
    course::{Course, Pace, Turn},
    http::{Http, Reply},
    mirror::Mirror,
    part::Part,
    wanted::Wanted,
};

/// What happens meanwhile, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// What an earlier process left is read: bytes so far, of how many.
    Reading(u64, u64),
    /// A mirror is asked, from this byte on.
    Asking(&'a str, u64),
    /// So many bytes are here, of how many, if that is known.
    Received(u64, Option<u64>),
    /// A try came to nothing: where, and why.
    Failed(&'a str, &'a Fault),
    /// Nothing is done for this long.
    Pausing(Duration),
}

/// What a transfer needs of the world.
pub struct World<'a> {
    /// Sends requests.
    pub http: &'a Http,
    /// The mirrors, in the order in which they are asked. At least one.
    pub mirrors: &'a [Mirror],
    /// How patient to be.
    pub pace: Pace,
    /// Free bytes on the disk of a folder.
    pub free: &'a dyn Fn(&Path) -> io::Result<u64>,
    /// Lets time pass.
    pub pause: &'a dyn Fn(Duration),
    /// Hears what happens.
    pub report: &'a dyn Fn(Report<'_>),
}

/// Why a file is not here.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No mirror has it, or none gives it.
    #[error("no mirror gave {name}{}; the last one, {url}, {fault}", keeps(*kept))]
    Mirrors {
        /// The file.
        name: String,
        /// What was asked for last.
        url: String,
        /// What came of it.
        fault: Fault,
        /// Whether another try may do better.
        passing: bool,
        /// Bytes that are kept for it.
        kept: u64,
    },
    /// The disk has no room for it.
    #[error(
        "{name}: {missing} more bytes and a reserve of {RESERVE} need room in {}, where {free} bytes are free: \
         make room, or name another folder with --param-cache",
        folder.display()
    )]
    NoRoom {
        /// The file.
        name: String,
        /// Where it should lie.
        folder: PathBuf,
        /// Bytes that are not here yet.
        missing: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The disk fails.
    #[error("{name} in {}: {error}", folder.display())]
    Disk {
        /// The file.
        name: String,
        /// Where it should lie.
        folder: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
}

/// Fetches a file into a folder and returns its path there. Whatever was under its name is replaced, in the moment in which
/// the new file is whole, right and on the disk.
pub fn fetch(wanted: &Wanted, folder: &Path, world: &World<'_>) -> Result<PathBuf, FetchError> {
    let transfer = Transfer { wanted, folder, world };
    let reading = |done, of| (world.report)(Report::Reading(done, of));
    let mut part = Part::open(folder, wanted, &reading).map_err(|e| transfer.disk(e))?;
    let mut course = Course::new(world.mirrors.len(), world.pace);
    let mut mirror = 0;
    loop {
        let url = world.mirrors[mirror].url(wanted);
        let mut received = 0;
        let (fault, turn) = match transfer.receive(&mut part, &url, &mut received) {
            Ok(()) if part.is_right() => return part.place().map_err(|e| transfer.disk(e)),
            Ok(()) => {
                let text = format!("gave a file with digest {}, not {}; it is deleted", part.digest(), wanted.digest);
                let turn = course.gave_wrong_file(mirror, part.in_one_piece());
                part.discard().map_err(|e| transfer.disk(e))?;
                (Fault::lasting(text), turn)
            }
            Err(Stop::Fault(fault)) => {
                let turn = course.failed(mirror, received, &fault, rand::random());
                (fault, turn)
            }
            Err(Stop::Error(error)) => {
                part.leave().map_err(|e| transfer.disk(e))?;
                return Err(error);
            }
        };
        (world.report)(Report::Failed(&url, &fault));
        match turn {
            Turn::Ask { mirror: next, after } => {
                mirror = next;
                if !after.is_zero() {
                    (world.report)(Report::Pausing(after));
                    (world.pause)(after);
                }
            }
            Turn::GiveUp { passing } => {
                let kept = part.leave().map_err(|e| transfer.disk(e))?;
                return Err(FetchError::Mirrors { name: wanted.name.clone(), url, fault, passing, kept });
            }
        }
    }
}

/// Why a try has ended early.
enum Stop {
    /// A mirror is to blame: there may be others.
    Fault(Fault),
    /// Nobody can help.
    Error(FetchError),
}

#[derive(Clone, Copy)]
struct Transfer<'a> {
    wanted: &'a Wanted,
    folder: &'a Path,
    world: &'a World<'a>,
}

impl Transfer<'_> {
    /// Asks one mirror for what is missing. `Ok` if it gave all it has: only the digest can tell whether that is right.
    fn receive(&self, part: &mut Part, url: &str, received: &mut u64) -> Result<(), Stop> {
        if part.is_complete() {
            return Ok(());
        }
        let (reply, total) = loop {
            let asked = part.asked(url);
            (self.world.report)(Report::Asking(url, asked.from));
            let reply = self.world.http.get(url, asked.from, asked.validator).map_err(Stop::Fault)?;
            let (append, total) = match judge(&asked, &reply.head, self.wanted) {
                Verdict::Append { total } => (true, total),
                Verdict::Whole { total } => (false, total),
                Verdict::Complete => return Ok(()),
                // Once at most: the whole is asked for then.
                Verdict::Restart => {
                    part.discard().map_err(|e| self.stop(e))?;
                    continue;
                }
                Verdict::Fault(fault) => return Err(Stop::Fault(fault)),
            };
            part.begin(url, reply.head.validator.clone(), total, append).map_err(|e| self.stop(e))?;
            break (reply, total);
        };
        let least = *self.wanted.bytes.start();
        self.check_room(total.unwrap_or(least).saturating_sub(part.bytes()))?;
        self.take(part, reply, total, received)?;
        match total {
            Some(total) if part.bytes() < total => {
                Err(Stop::Fault(Fault::passing(format!("ended after {} of {total} bytes", part.bytes()))))
            }
            _ => Ok(()),
        }
    }

    /// Writes a body to the part.
    fn take(&self, part: &mut Part, mut reply: Reply, total: Option<u64>, received: &mut u64) -> Result<(), Stop> {
        let (mut buffer, mut unchecked) = (vec![0; 256 << 10], 0);
        let most = *self.wanted.bytes.end();
        loop {
            let n = match reply.body.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stop::Fault(self.world.http.fault(error))),
            };
            if part.bytes() + n as u64 > most {
                part.discard().map_err(|e| self.stop(e))?;
                return Err(Stop::Fault(Fault::lasting(format!("sends more than {most} bytes: it is another file"))));
            }
            part.write(&buffer[..n]).map_err(|e| self.stop(e))?;
            *received += n as u64;
            unchecked += n as u64;
            (self.world.report)(Report::Received(part.bytes(), total));
            // Others write to the disk too, and not every mirror says how much is to come.
            if unchecked >= RESERVE / 2 {
                unchecked = 0;
                self.check_room(total.map_or(0, |total| total.saturating_sub(part.bytes())))?;
            }
        }
    }

    fn check_room(&self, missing: u64) -> Result<(), Stop> {
        let free = (self.world.free)(self.folder).map_err(|e| self.stop(e))?;
        if free >= missing.saturating_add(RESERVE) {
            return Ok(());
        }
        let (name, folder) = (self.wanted.name.clone(), self.folder.to_owned());
        Err(Stop::Error(FetchError::NoRoom { name, folder, missing, free }))
    }

    fn stop(&self, error: io::Error) -> Stop {
        Stop::Error(self.disk(error))
    }

    fn disk(&self, error: io::Error) -> FetchError {
        FetchError::Disk { name: self.wanted.name.clone(), folder: self.folder.to_owned(), error }
    }
}

fn keeps(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!(" ({bytes} bytes are kept, and the next try goes on from there)"),
    }
}

/// Bytes that stay free on the disk.
pub const RESERVE: u64 = 512 << 20;

//! Whole transfers, from mirrors that misbehave.

mod answers;
mod server;

use std::{
    cell::RefCell,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use cuzk_gpu::params::Hasher;
use server::{Act, Ends, Request, Server};

use super::{
    course::Pace,
    http::{Http, HttpOptions},
    mirror::Mirror,
    part::{FolderLock, Part},
    transfer::{FetchError, RESERVE, Report, World, fetch},
    wanted::Wanted,
};

const NAME: &str = "v28-test.params";
const SIZE: usize = 300_000;

/// A file of numbers, all of them different.
fn contents() -> Vec<u8> {
    (0..SIZE as u32 / 4).flat_map(u32::to_be_bytes).collect()
}

fn wanted() -> Wanted {
    let mut hasher = Hasher::default();
    hasher.update(&contents());
    Wanted { name: NAME.into(), digest: hasher.digest(), cid: "Qm1".into(), bytes: SIZE as u64..=SIZE as u64 }
}

struct Place {
    dir: tempfile::TempDir,
    wanted: Wanted,
    silence: Duration,
    allow_http: bool,
    free: u64,
    /// What was reported.
    told: RefCell<Vec<String>>,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary folder"),
            wanted: wanted(),
            silence: Duration::from_secs(60),
            allow_http: true,
            free: u64::MAX,
            told: RefCell::default(),
        }
    }

    fn fetch(&self, servers: &[&Server]) -> Result<PathBuf, FetchError> {
        let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
        self.fetch_from(&urls)
    }

    fn fetch_from(&self, urls: &[String]) -> Result<PathBuf, FetchError> {
        let mirrors: Vec<Mirror> = urls.iter().map(|url| url.parse().expect("a URL")).collect();
        let options = HttpOptions { allow_http: self.allow_http, silence: self.silence };
        let http = Http::new(options, |_| None).expect("no proxy");
        let report = |report: Report<'_>| match report {
            Report::Reading(done, of) => self.told.borrow_mut().push(format!("read {done} of {of}")),
            Report::Failed(_, fault) => self.told.borrow_mut().push(fault.to_string()),
            Report::Pausing(pause) => self.told.borrow_mut().push(format!("paused {}", !pause.is_zero())),
            Report::Asking(..) | Report::Received(..) => {}
        };
        let world = World {
            http: &http,
            mirrors: &mirrors,
            pace: Pace { tries: 3, progress: 1000, ..Pace::default() },
            free: &|_: &Path| Ok::<_, io::Error>(self.free),
            pause: &|_| {},
            report: &report,
        };
        fetch(&self.wanted, self.dir.path(), &world)
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.dir.path().join(format!("{NAME}{suffix}"))
    }

    /// The file is whole and in its place, and nothing else is there.
    fn is_done(&self) {
        assert_eq!(fs::read(self.path("")).expect("in its place"), contents());
        assert_eq!(self.names(), [NAME]);
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("readable");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("readable").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn told(&self) -> String {
        self.told.borrow().join("\n")
    }
}

fn ranges(requests: &[Request]) -> Vec<Option<u64>> {
    requests.iter().map(|request| request.range).collect()
}

#[test]
fn a_good_mirror_is_asked_once() {
    let (place, server) = (Place::new(), Server::new([Act::file(&contents())]));
    assert_eq!(place.fetch(&[&server]).expect("good"), place.path(""));
    place.is_done();
    assert_eq!(server.seen(), [Request { path: format!("/{NAME}"), ..Request::default() }]);
    assert_eq!(place.told(), "");
}

#[test]
fn what_was_there_is_replaced() {
    let (place, server) = (Place::new(), Server::new([Act::file(&contents())]));
    fs::write(place.path(""), b"wrong").expect("writable");
    place.fetch(&[&server]).expect("good");
    place.is_done();
}

#[test]
fn a_cut_connection_is_taken_up_where_it_ended() {
    let act = Act::file(&contents());
    let server = Server::new([act.clone().cut_after(100_000), act.clone().cut_after(50_000), act]);
    let place = Place::new();
    place.fetch(&[&server]).expect("good in the end");
    place.is_done();
    assert_eq!(ranges(&server.seen()), [None, Some(100_000), Some(150_000)]);
    assert!(server.seen()[1..].iter().all(|request| request.if_range.as_deref() == Some("\"1\"")));
    assert!(place.told().contains("paused true"), "{}", place.told());
}

#[test]
fn a_mirror_without_ranges_begins_anew() {
    let act = Act { ranges: false, ..Act::file(&contents()) };
    let server = Server::new([act.clone().cut_after(100_000), act]);
    let place = Place::new();
    place.fetch(&[&server]).expect("good in the end");
    place.is_done();
    assert_eq!(ranges(&server.seen()), [None, Some(100_000)]);
}

#[test]
fn a_file_that_changed_meanwhile_begins_anew() {
    let other = Act::file(&vec![7; SIZE]).etag("old").cut_after(100_000);
    let server = Server::new([other, Act::file(&contents()).etag("new")]);
    let place = Place::new();
    place.fetch(&[&server]).expect("good in the end");
    place.is_done();
    assert_eq!(server.seen()[1].if_range.as_deref(), Some("\"old\""));
}

#[test]
fn a_mixture_of_versions_is_thrown_away_and_fetched_whole() {
    // Without an entity tag the versions cannot be told apart.
    let old = Act { etag: None, ..Act::file(&vec![7; SIZE]) }.cut_after(100_000);
    let new = Act { etag: None, ..Act::file(&contents()) };
    let server = Server::new([old, new]);
    let place = Place::new();
    place.fetch(&[&server]).expect("good in the end");
    place.is_done();
    assert_eq!(ranges(&server.seen()), [None, Some(100_000), None]);
    assert!(place.told().contains("gave a file with digest"), "{}", place.told());
}

#[test]
fn an_error_page_is_called_one_and_never_put_in_place() {
    let (place, server) = (Place::new(), Server::new([Act::page(179)]));
    let error = place.fetch(&[&server]).unwrap_err();
    let text = error.to_string();
    for part in [
        "answered an HTML page of 179 bytes instead of the file",
        "status 200 OK, text/html; charset=utf-8",
        "which has 300000 bytes",
        &server.url(),
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert!(matches!(error, FetchError::Mirrors { passing: false, kept: 0, .. }));
    assert_eq!((place.names().len(), server.seen().len()), (0, 1));
}

#[test]
fn a_wrong_file_of_the_right_size_is_deleted_and_the_next_mirror_asked() {
    let (wrong, good) = (Server::new([Act::file(&vec![7; SIZE])]), Server::new([Act::file(&contents())]));
    let place = Place::new();
    place.fetch(&[&wrong, &good]).expect("the second is good");
    place.is_done();
    assert!(place.told().contains(&format!("not {}; it is deleted", place.wanted.digest)), "{}", place.told());
    assert_eq!((wrong.seen().len(), ranges(&good.seen())), (1, vec![None]));

    let alone = Place::new();
    assert!(matches!(alone.fetch(&[&wrong]), Err(FetchError::Mirrors { passing: false, kept: 0, .. })));
    assert_eq!(alone.names(), [""; 0]);
}

#[test]
fn what_one_mirror_gave_is_gone_on_with_at_the_next() {
    let first = Server::new([Act::file(&contents()).cut_after(500), Act::status(404)]);
    let second = Server::new([Act::file(&contents()).etag("theirs")]);
    let place = Place::new();
    place.fetch(&[&first, &second]).expect("good in the end");
    place.is_done();
    // Another mirror's entity tag says nothing: the digest of the whole does.
    assert_eq!((second.seen()[0].range, &second.seen()[0].if_range), (Some(500), &None));
}

#[test]
fn a_mirror_without_the_file_is_asked_once() {
    let (empty, good) = (Server::new([Act::status(404)]), Server::new([Act::file(&contents())]));
    let place = Place::new();
    place.fetch(&[&empty, &good]).expect("the second has it");
    place.is_done();
    assert_eq!(place.told(), "did not give the file (status 404 Not Found, application/octet-stream)");
    let error = Place::new().fetch(&[&empty]).unwrap_err();
    assert!(matches!(error, FetchError::Mirrors { passing: false, .. }), "{error}");
}

#[test]
fn a_mirror_that_is_overloaded_is_asked_again() {
    let server = Server::new([Act::status(503), Act::status(429), Act::file(&contents())]);
    let place = Place::new();
    place.fetch(&[&server]).expect("good in the end");
    place.is_done();
    let error = Place::new().fetch(&[&Server::new([Act::status(503)])]).unwrap_err();
    assert!(matches!(error, FetchError::Mirrors { passing: true, .. }), "{error}");
}

#[test]
fn silence_is_given_up_and_taken_up_again() {
    let silent = Act { ends: Ends::SilentAfter(100_000), ..Act::file(&contents()) };
    let server = Server::new([silent, Act::file(&contents())]);
    let place = Place { silence: Duration::from_millis(200), ..Place::new() };
    place.fetch(&[&server]).expect("good in the end");
    place.is_done();
    assert!(place.told().contains("sent nothing for 200ms"), "{}", place.told());
    assert_eq!(ranges(&server.seen()), [None, Some(100_000)]);
}

#[test]
fn a_redirect_is_followed_with_its_range() {
    let store = Server::new([Act::file(&contents()).cut_after(100_000), Act::file(&contents())]);
    let to = Act { location: Some(format!("{}/there", store.url())), ..Act::status(302) };
    let place = Place::new();
    place.fetch(&[&Server::new([to])]).expect("good in the end");
    place.is_done();
    assert_eq!(ranges(&store.seen()), [None, Some(100_000)]);
    assert!(store.seen().iter().all(|request| request.path == "/there"));
}

#[test]
fn redirects_end() {
    let place = Place::new();
    let round = Act { location: Some("/again".into()), ..Act::status(302) };
    let text = place.fetch(&[&Server::new([round])]).unwrap_err().to_string();
    assert!(text.contains("redirects more than 5 times"), "{text}");
}

#[test]
fn nothing_is_asked_for_without_encryption_unless_allowed() {
    let (place, server) = (Place { allow_http: false, ..Place::new() }, Server::new([Act::file(&contents())]));
    let text = place.fetch(&[&server]).unwrap_err().to_string();
    assert!(text.contains("--allow-http"), "{text}");
    assert_eq!(server.seen(), []);
}

#[test]
fn a_body_of_unknown_length_ends_where_the_digest_says() {
    let server = Server::new([Act { length: false, ..Act::file(&contents()) }]);
    let place = Place::new();
    place.fetch(&[&server]).expect("good");
    place.is_done();

    let endless = Server::new([Act { length: false, ..Act::file(&vec![0; 2 * SIZE]) }]);
    let place = Place::new();
    let text = place.fetch(&[&endless]).unwrap_err().to_string();
    assert!(text.contains("sends more than 300000 bytes"), "{text}");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn an_earlier_process_is_gone_on_with() {
    let (place, server) = (Place::new(), Server::new([Act::file(&contents()).cut_after(100_000), Act::status(404)]));
    let error = place.fetch(&[&server]).unwrap_err();
    assert!(matches!(error, FetchError::Mirrors { kept: 100_000, .. }), "{error}");
    assert!(error.to_string().contains("100000 bytes are kept"), "{error}");
    assert_eq!(place.names(), [format!("{NAME}.part"), format!("{NAME}.part.json")]);

    let server = Server::new([Act::file(&contents())]);
    place.fetch(&[&server]).expect("good");
    place.is_done();
    assert_eq!(ranges(&server.seen()), [Some(100_000)]);
    assert!(place.told().contains("read 100000 of 100000"), "{}", place.told());
}

#[test]
fn a_part_that_is_damaged_or_of_another_file_is_not_believed() {
    // Without its note nobody knows what it is.
    let (place, server) = (Place::new(), Server::new([Act::file(&contents())]));
    fs::write(place.path(".part"), &contents()[..1000]).expect("writable");
    place.fetch(&[&server]).expect("good");
    place.is_done();
    assert_eq!(ranges(&server.seen()), [None]);

    // All bytes are there, and some are wrong.
    let place = Place::new();
    let cut = Server::new([Act::file(&contents()).cut_after(SIZE - 1), Act::status(404)]);
    place.fetch(&[&cut]).unwrap_err();
    fs::write(place.path(".part"), vec![7; SIZE]).expect("writable");
    let server = Server::new([Act::file(&contents())]);
    place.fetch(&[&server]).expect("good");
    place.is_done();
    assert_eq!(ranges(&server.seen()), [None], "what is complete is judged before anybody is asked");
}

#[test]
fn a_link_is_not_written_through() {
    let (place, server) = (Place::new(), Server::new([Act::file(&contents())]));
    let target = place.dir.path().join("precious");
    fs::write(&target, b"precious").expect("writable");
    std::os::unix::fs::symlink(&target, place.path(".part")).expect("writable");
    assert!(matches!(place.fetch(&[&server]), Err(FetchError::Disk { .. })));
    assert_eq!(fs::read(&target).expect("there"), b"precious");
    assert_eq!(server.seen(), []);
}

#[test]
fn a_full_disk_is_told_before_it_is_full() {
    let place = Place { free: RESERVE + SIZE as u64 - 1, ..Place::new() };
    let error = place.fetch(&[&Server::new([Act::file(&contents())])]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, FetchError::NoRoom { missing: 300_000, .. }), "{text}");
    assert!(text.contains("300000 more bytes") && text.contains("--param-cache"), "{text}");
    assert_eq!(place.names(), [""; 0]);
    let place = Place { free: RESERVE + SIZE as u64, ..Place::new() };
    place.fetch(&[&Server::new([Act::file(&contents())])]).expect("just enough");
}

#[test]
fn nobody_there_is_a_fault_that_may_pass() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let error = Place::new().fetch_from(&[format!("http://{closed}")]).unwrap_err();
    assert!(matches!(error, FetchError::Mirrors { passing: true, .. }), "{error}");
}

#[test]
fn one_process_fetches_into_a_folder_at_a_time() {
    let place = Place::new();
    let lock = FolderLock::take(place.dir.path()).expect("writable");
    assert!(lock.is_some() && FolderLock::take(place.dir.path()).expect("writable").is_none());
    drop(lock);
    assert!(FolderLock::take(place.dir.path()).expect("writable").is_some());
}

#[test]
fn a_part_knows_what_to_ask() {
    let place = Place::new();
    let mut part = Part::open(place.dir.path(), &place.wanted, &|_, _| {}).expect("writable");
    assert_eq!((part.asked("u").from, part.is_complete(), part.in_one_piece()), (0, false, true));
    let validator = super::answer::Validator::of(Some("\"1\""), None);
    part.begin("u", validator.clone(), Some(4), false).expect("writable");
    part.write(b"ab").expect("writable");
    assert_eq!((part.asked("u").validator, part.asked("v").validator), (validator.as_ref(), None));
    assert_eq!((part.asked("v").from, part.asked("v").total), (2, Some(4)));
    part.begin("u", None, Some(4), true).expect("writable");
    part.write(b"cd").expect("writable");
    assert_eq!((part.is_complete(), part.in_one_piece(), part.is_right()), (true, false, false));
}

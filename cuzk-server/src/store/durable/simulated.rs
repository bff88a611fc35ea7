//! A disk in memory that forgets what was not synced, dies at a chosen step, and can be full.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use redb::StorageBackend;

use super::disk::{Disk, SPOOL};

/// The disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Simulated(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By number; names point to numbers.
    files: Vec<Contents>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    /// Changes of names since the latest sync of their folder, in order: the disk keeps a prefix of them.
    unsynced_names: Vec<NameChange>,
    /// Changes so far.
    steps: usize,
    /// The step at which the power fails.
    dies_at: Option<usize>,
    /// The error of every change while it is set.
    refuses: Option<io::ErrorKind>,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Since the latest sync: the disk keeps any of them.
    unsynced: Vec<DataChange>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Put(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone, Debug)]
enum DataChange {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Simulated {
    /// A disk whose power fails at its step of that number.
    pub(super) fn dying_at(step: usize) -> Self {
        let disk = Self::default();
        disk.0.lock().unwrap().dies_at = Some(step);
        disk
    }

    /// The disk as the next process finds it after the power has failed: what was synced, and some of the rest.
    pub(super) fn after_power_failure(&self, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let state = self.0.lock().unwrap();
        let mut names = state.synced_names.clone();
        let kept = random.gen_range(0..=state.unsynced_names.len());
        state.unsynced_names[..kept].iter().for_each(|change| change.apply(&mut names));
        let files = state.files.iter().map(|file| file.after_power_failure(&mut random));
        Self::holding(files.collect(), names)
    }

    /// The disk as the next process finds it after this one was killed: everything that was written.
    pub(super) fn after_kill(&self) -> Self {
        let state = self.0.lock().unwrap();
        let files = state.files.iter().map(|file| Contents::synced(file.now.clone()));
        Self::holding(files.collect(), state.names.clone())
    }

    fn holding(files: Vec<Contents>, names: BTreeMap<String, usize>) -> Self {
        Self(Arc::new(Mutex::new(State { files, synced_names: names.clone(), names, ..State::default() })))
    }

    /// Lets every change fail, or succeed again.
    pub(super) fn refuse(&self, kind: Option<io::ErrorKind>) {
        self.0.lock().unwrap().refuses = kind;
    }

    /// Lets the power fail so many steps from now.
    pub(super) fn die_in(&self, steps: usize) {
        let mut state = self.0.lock().unwrap();
        state.dies_at = Some(state.steps + steps);
    }

    /// Changes so far.
    pub(super) fn steps(&self) -> usize {
        self.0.lock().unwrap().steps
    }

    /// Writes over a file behind everyone's back.
    pub(super) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.lock().unwrap();
        let file = state.names[name];
        let mut bytes = state.files[file].now.clone();
        change(&mut bytes);
        state.files[file] = Contents::synced(bytes);
    }
}

impl State {
    /// Before every change. At the fatal step `half` of it happens.
    fn step(&mut self, half: impl FnOnce(&mut Self)) -> io::Result<()> {
        if let Some(kind) = self.refuses {
            return Err(kind.into());
        }
        match self.dies_at {
            Some(at) if self.steps >= at => {
                if self.steps == at {
                    half(self);
                }
                self.steps += 1;
                Err(io::Error::other("the power is off"))
            }
            _ => {
                self.steps += 1;
                Ok(())
            }
        }
    }

    fn alive(&self) -> io::Result<()> {
        match self.dies_at {
            Some(at) if self.steps > at => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    fn create(&mut self, name: &str) -> usize {
        let file = self.files.len();
        self.files.push(Contents::default());
        self.change_names(NameChange::Put(name.to_owned(), file));
        file
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Put(name, file) => {
                names.insert(name.clone(), *file);
            }
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }

    fn is_in(&self, folder: &str) -> bool {
        let (Self::Put(name, _) | Self::Rename(name, _) | Self::Remove(name)) = self;
        name.rsplit_once('/').map_or("", |(folder, _)| folder) == folder
    }
}

impl Contents {
    fn synced(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), synced: bytes, unsynced: Vec::new() }
    }

    fn change(&mut self, change: DataChange) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }

    /// Each change since the sync happened, or not, or in part.
    fn after_power_failure(&self, random: &mut StdRng) -> Self {
        let mut bytes = self.synced.clone();
        for change in &self.unsynced {
            match (random.gen_range(0..3), change) {
                (0, _) => {}
                (1, DataChange::Write(at, data)) => {
                    let kept = random.gen_range(0..=data.len());
                    DataChange::Write(*at, data[..kept].to_vec()).apply(&mut bytes);
                }
                _ => change.apply(&mut bytes),
            }
        }
        Self::synced(bytes)
    }
}

impl DataChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, data) => {
                let end = at + data.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(data);
            }
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }
}

impl Disk for Simulated {
    fn create_synced(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let bytes = parts.concat();
        state.step(|_| {})?;
        let file = state.create(name);
        state.step(|state| state.files[file].change(DataChange::Write(0, bytes[..bytes.len() / 2].to_vec())))?;
        state.files[file].change(DataChange::Write(0, bytes));
        state.step(|_| {})?;
        let now = state.files[file].now.clone();
        state.files[file] = Contents::synced(now);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.find(from)?;
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        state.step(|_| {})?;
        state.change_names(change);
        Ok(())
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.step(|_| {})?;
        let (synced, rest) = state.unsynced_names.drain(..).partition(|change| change.is_in(folder));
        state.unsynced_names = rest;
        let synced: Vec<NameChange> = synced;
        synced.iter().for_each(|change| change.apply(&mut state.synced_names));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.find(name)?;
        state.step(|_| {})?;
        state.change_names(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let state = self.0.lock().unwrap();
        state.alive()?;
        Ok(state.files[state.find(name)?].now.clone())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>> {
        let state = self.0.lock().unwrap();
        state.alive()?;
        let in_folder = state.names.iter().filter_map(|(name, file)| {
            let (parent, name) = name.rsplit_once('/').unwrap_or(("", name));
            (parent == folder).then(|| (name.to_owned(), state.files[*file].now.len() as u64))
        });
        Ok(in_folder.collect())
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        assert_eq!(name, SPOOL, "the only folder there is");
        Ok(())
    }

    fn open_database(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.0.lock().unwrap();
        let file = match state.find(name) {
            Ok(file) => file,
            Err(_) => {
                state.step(|_| {})?;
                state.create(name)
            }
        };
        Ok(Box::new(OpenFile { disk: self.clone(), file }))
    }
}

/// One file of the disk, as a database sees it.
#[derive(Debug)]
struct OpenFile {
    disk: Simulated,
    file: usize,
}

impl OpenFile {
    fn change(&self, half: Option<DataChange>, whole: DataChange) -> io::Result<()> {
        let mut state = self.disk.0.lock().unwrap();
        state.step(|state| half.into_iter().for_each(|half| state.files[self.file].change(half)))?;
        state.files[self.file].change(whole);
        Ok(())
    }
}

impl StorageBackend for OpenFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.0.lock().unwrap();
        state.alive()?;
        Ok(state.files[self.file].now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.0.lock().unwrap();
        state.alive()?;
        let (begin, end) = (offset as usize, offset as usize + out.len());
        let bytes = state.files[self.file].now.get(begin..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(None, DataChange::Length(len as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock().unwrap();
        state.step(|_| {})?;
        let now = state.files[self.file].now.clone();
        state.files[self.file] = Contents::synced(now);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let at = offset as usize;
        let half = DataChange::Write(at, data[..data.len() / 2].to_vec());
        self.change(Some(half), DataChange::Write(at, data.to_vec()))
    }
}

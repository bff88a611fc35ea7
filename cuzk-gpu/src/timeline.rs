//! When the phases of the last partitions ran: kept in memory, and written as a trace that Perfetto and Chrome show.
//!
//! The file is the trace event format's JSON array, whose closing bracket may be missing: so it can be looked at while it
//! is still being written. A device is a process there; its kernel phases are one line, each thread that proves is another.

use std::{
    cell::Cell,
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use serde_json::{Value, json};

use crate::timing::{Phase, Timings};

/// Partitions that are kept in memory.
const KEPT: usize = 256;

/// One partition.
#[derive(Clone, Debug)]
pub struct Record {
    /// Counts all partitions of this process.
    pub number: u64,
    /// The device's number; the host comes after the last device.
    pub device: usize,
    /// The thread that proved it.
    pub lane: u32,
    /// When its phases ran.
    pub timings: Timings,
}

/// The last partitions of all devices.
#[derive(Debug)]
pub struct Timeline {
    begin: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    recent: VecDeque<Record>,
    file: Option<File>,
}

impl Timeline {
    /// Kept in memory only.
    pub fn in_memory() -> Self {
        let state = State { next: 0, recent: VecDeque::with_capacity(KEPT), file: None };
        Self { begin: Instant::now(), state: Mutex::new(state) }
    }

    /// Also written to a file, which is replaced if it is there. `devices` are the names of the devices, in order, the
    /// host's last.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn with_file(path: &Path, devices: &[String]) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(b"[\n")?;
        let timeline = Self::in_memory();
        write(&mut file, &names(devices))?;
        timeline.state.lock().unwrap_or_else(PoisonError::into_inner).file = Some(file);
        Ok(timeline)
    }

    /// Notes a partition that the current thread has proven on a device. A file that cannot be written is given up.
    pub fn record(&self, device: usize, timings: Timings) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let record = Record { number: state.next, device, lane: lane(), timings };
        state.next += 1;
        if let Some(file) = &mut state.file
            && let Err(error) = write(file, &events(&record, self.begin))
        {
            tracing::error!("the timeline ends: {error}");
            state.file = None;
        }
        if state.recent.len() == KEPT {
            state.recent.pop_front();
        }
        state.recent.push_back(record);
    }

    /// The last partitions, oldest first.
    pub fn recent(&self) -> Vec<Record> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).recent.iter().cloned().collect()
    }
}

/// This thread's number among those that ever proved.
fn lane() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static LANE: Cell<Option<u32>> = const { Cell::new(None) };
    }
    LANE.get().unwrap_or_else(|| {
        let lane = NEXT.fetch_add(1, Ordering::Relaxed);
        LANE.set(Some(lane));
        lane
    })
}

fn write(file: &mut File, events: &[Value]) -> io::Result<()> {
    let text: String = events.iter().map(|event| format!("{event},\n")).collect();
    file.write_all(text.as_bytes())
}

/// What the lines are called.
fn names(devices: &[String]) -> Vec<Value> {
    let name = |pid: usize, what: &str, name: &str| json!({"name": what, "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}});
    devices
        .iter()
        .enumerate()
        .flat_map(|(i, device)| [name(i, "process_name", device), name(i, "thread_name", "kernel phases")])
        .collect()
}

/// A partition's phases; times in microseconds since `begin`.
fn events(record: &Record, begin: Instant) -> Vec<Value> {
    let micros = |at: Instant| at.saturating_duration_since(begin).as_secs_f64() * 1e6;
    let event = |interval: &crate::timing::Interval, lane: u32| {
        let (from, to) = (micros(interval.begin), micros(interval.end));
        json!({
            "name": interval.phase.name(), "ph": "X", "ts": from, "dur": to - from, "pid": record.device, "tid": lane,
            "args": {"partition": record.number},
        })
    };
    let intervals = record.timings.intervals();
    let own = intervals.iter().map(|interval| event(interval, record.lane));
    let shared = intervals.iter().filter(|i| i.phase == Phase::LockHold).map(|interval| event(interval, 0));
    own.chain(shared).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn timings(begin: Instant) -> Timings {
        let mut timings = Timings::default();
        let at = |ms| begin + Duration::from_millis(ms);
        timings.push(Phase::LockHold, at(10), at(30));
        timings.push(Phase::MsmBG2, at(30), at(45));
        timings
    }

    #[test]
    fn the_file_is_a_trace_at_any_time() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("trace.json");
        let timeline = Timeline::with_file(&path, &["a".into(), "cpu".into()]).expect("it can be written");
        for partitions in 0..3 {
            let text = std::fs::read_to_string(&path).expect("it is there");
            let closed = format!("{}]", text.trim_end().trim_end_matches(','));
            let trace: Vec<Value> = serde_json::from_str(&closed).expect("it is JSON");
            assert_eq!(trace.len(), 4 + 3 * partitions);
            timeline.record(1, timings(timeline.begin));
        }
        let text = std::fs::read_to_string(&path).expect("it is there");
        let line = text.lines().nth(5).expect("the first event follows the names").trim_end_matches(',');
        let event: Value = serde_json::from_str(line).expect("it is JSON");
        assert_eq!((&event["name"], &event["pid"], &event["ph"]), (&"lock_hold".into(), &1.into(), &"X".into()));
        assert_eq!((event["ts"].as_f64(), event["dur"].as_f64()), (Some(10e3), Some(20e3)));
    }

    #[test]
    fn memory_is_bounded() {
        let timeline = Timeline::in_memory();
        for _ in 0..KEPT + 3 {
            timeline.record(0, Timings::default());
        }
        let recent = timeline.recent();
        assert_eq!((recent.len(), recent[0].number), (KEPT, 3));
        assert!(recent.iter().all(|record| record.lane == recent[0].lane), "one thread is one line");
    }
}

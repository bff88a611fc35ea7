//! A picture of an engine as JSON: what `GetStatus` and `ListJobs` tell, and what the workers of the devices did.

use serde_json::{Map, Value, json};

use crate::{
    core::{
        job::JobStatus,
        view::{JobFilter, JobState},
    },
    engine::{
        Engine,
        view::{IntervalView, TimelineView},
    },
    grpc::views::{self, unix_ms},
    json,
    proving::Proving,
};

/// Unfinished jobs in a picture, most urgent first.
const UNFINISHED: usize = 40;
/// Ended jobs in a picture, the latest first.
const ENDED: usize = 20;

/// The picture, and the number to ask with for the next one.
pub(super) fn of_engine<P: Proving>(engine: &Engine<P>, since: u64) -> (Value, u64) {
    let (view, timeline) = (engine.view(), engine.timeline(since));
    let list = |states: &[JobState], limit| {
        let found = engine.jobs(&JobFilter { states: states.to_vec(), kind: None, limit });
        found.into_iter().map(|job| json::job(&views::job(job))).collect::<Vec<_>>()
    };
    let ended = [JobStatus::Completed, JobStatus::Failed, JobStatus::Cancelled].map(JobState::Ended);
    let waiting: Map<String, Value> =
        view.waiting.iter().map(|(priority, jobs)| (priority.label().to_owned(), json!(jobs))).collect();
    let revision = view.revision;
    let next = timeline.next;
    let picture = json!({
        "revision": revision,
        "now_unix_ms": unix_ms(Some(std::time::SystemTime::now())),
        "waiting": waiting,
        "unfinished": list(&[JobState::Queued, JobState::Running], UNFINISHED),
        "ended": list(&ended, ENDED),
        "timeline": of_timeline(&timeline, since == 0),
        "status": json::status(&views::status(view)),
    });
    (picture, next)
}

/// `whole`: not only what is new.
fn of_timeline(timeline: &TimelineView, whole: bool) -> Value {
    let rows = |intervals: &[IntervalView]| intervals.iter().map(row).collect::<Vec<_>>();
    json!({
        "columns": ["device", "worker", "phase", "job_id", "partition", "from_unix_ms", "to_unix_ms"],
        "whole": whole,
        "past": rows(&timeline.past),
        "present": rows(&timeline.present),
    })
}

/// There are thousands of them: a list without names.
fn row(interval: &IntervalView) -> Value {
    json!([
        interval.device,
        interval.worker,
        interval.phase,
        interval.job_id,
        interval.partition,
        unix_ms(Some(interval.from)),
        unix_ms(interval.to),
    ])
}

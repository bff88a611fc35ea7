//! Streams of pictures. Each has a task that makes a picture only when there is room for one, so that a slow reader
//! costs the memory of one picture, misses those in between, and holds up nobody.

use cuzk_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::views;
use crate::{
    core::view::JobFilter,
    engine::{Engine, EngineWatch, JobWatch},
    proving::Proving,
};

/// A stream that a client reads.
pub(super) type Pictures<T> = ReceiverStream<Result<T, Status>>;

/// The pictures of one job.
pub(super) fn of_job<P: Proving>(mut watch: JobWatch<P>) -> Pictures<v1::Job> {
    spawn(|room| async move {
        while let Some(place) = reserve(&room).await {
            let next = tokio::select! {
                next = watch.next() => next,
                () = room.closed() => None,
            };
            let Some(job) = next else { return };
            place.send(Ok(views::job(job)));
        }
    })
}

/// The pictures of the whole engine, with so many jobs in each.
pub(super) fn of_engine<P: Proving>(
    engine: Engine<P>,
    mut watch: EngineWatch<P>,
    jobs: usize,
) -> Pictures<v1::WatchStatusResponse> {
    let filter = JobFilter { limit: jobs, ..JobFilter::default() };
    spawn(|room| async move {
        while let Some(place) = reserve(&room).await {
            let next = tokio::select! {
                next = watch.next() => next,
                () = room.closed() => None,
            };
            let Some(view) = next else { return };
            place.send(Ok(v1::WatchStatusResponse {
                revision: view.revision,
                jobs: engine.jobs(&filter).into_iter().map(views::job).collect(),
                status: Some(views::status(view)),
            }));
        }
    })
}

/// Room for one picture; `None` when the client has gone.
async fn reserve<T>(room: &mpsc::Sender<T>) -> Option<mpsc::Permit<'_, T>> {
    room.reserve().await.ok()
}

fn spawn<T, F>(task: impl FnOnce(mpsc::Sender<Result<T, Status>>) -> F) -> Pictures<T>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (room, pictures) = mpsc::channel(1);
    tokio::spawn(task(room));
    ReceiverStream::new(pictures)
}

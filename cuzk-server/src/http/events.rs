//! Streams of pictures. Each has a task that makes a picture only when there is room for one, so that a slow reader costs
//! the memory of one picture and misses those in between; one that reads nothing for long is given up.

use std::{sync::Arc, time::Duration};

use axum::response::sse::Event;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::source::Source;
use crate::engine::PICTURE_AT_LEAST_EVERY;

/// Streams at once.
pub(super) const STREAMS: usize = 32;
/// The time between two pictures, at least: people see no more.
const EVERY: Duration = Duration::from_millis(500);
/// How long a reader may leave a picture unread.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pictures as events, until `closing` changes or its sender is gone.
pub(super) fn stream(
    source: Arc<dyn Source>,
    place: OwnedSemaphorePermit,
    closing: watch::Receiver<()>,
) -> ReceiverStream<Result<Event, axum::Error>> {
    let (room, pictures) = mpsc::channel(1);
    tokio::spawn(async move {
        tell(&*source, &room, closing).await;
        drop(place);
    });
    ReceiverStream::new(pictures)
}

async fn tell(source: &dyn Source, room: &mpsc::Sender<Result<Event, axum::Error>>, mut closing: watch::Receiver<()>) {
    let mut changes = source.changes();
    let mut since = 0;
    loop {
        let Ok(Ok(place)) = tokio::time::timeout(PATIENCE, room.reserve()).await else { return };
        changes.borrow_and_update();
        let (picture, next) = source.picture(since);
        since = next;
        place.send(Event::default().json_data(picture));
        tokio::select! {
            () = next_look(&mut changes) => {}
            // Also when the server is dropped.
            _ = closing.changed() => return,
            () = room.closed() => return,
        }
    }
}

async fn next_look(changes: &mut watch::Receiver<u64>) {
    tokio::time::sleep(EVERY).await;
    // Ages go on without a change.
    let _ = tokio::time::timeout(PICTURE_AT_LEAST_EVERY, changes.changed()).await;
}

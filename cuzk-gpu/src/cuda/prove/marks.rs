//! When the phases of a partition ran on the device: events between them, made once, read when all work is done.

use std::time::Instant;

use crate::{
    cuda::{
        error::CudaError,
        gpu::Gpu,
        stream::{Event, Stream},
    },
    timing::{Phase, Timings},
};

/// The most marks of a partition.
const CAPACITY: usize = 24;

/// Marks in one stream.
#[derive(Debug)]
pub(super) struct Marks {
    events: Vec<Event>,
    /// What ended at each mark; nothing that counts, where it is only the begin of the next phase.
    ended: Vec<Option<Phase>>,
}

impl Marks {
    /// Makes the events.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn new(gpu: &Gpu) -> Result<Self, CudaError> {
        let events = (0..CAPACITY).map(|_| Event::new(gpu)).collect::<Result<_, _>>()?;
        Ok(Self { events, ended: Vec::with_capacity(CAPACITY) })
    }

    /// Forgets all marks.
    pub(super) fn clear(&mut self) {
        self.ended.clear();
    }

    /// Marks the end of a phase that began at the mark before, or with `None` only the begin of the next.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn mark(&mut self, stream: &Stream, ended: Option<Phase>) -> Result<(), CudaError> {
        let event = self.events.get(self.ended.len()).expect("a partition has fewer phases than there are events");
        event.record(stream)?;
        self.ended.push(ended);
        Ok(())
    }

    /// Notes the phases, once all of them are done: `now` is when the host saw the last mark reached.
    ///
    /// # Errors
    /// What the driver reports.
    pub(super) fn read(&self, now: Instant, timings: &mut Timings) -> Result<(), CudaError> {
        let Some(last) = self.ended.len().checked_sub(1).map(|last| &self.events[last]) else { return Ok(()) };
        let mut begin = None;
        for (event, ended) in self.events.iter().zip(&self.ended) {
            let end = now - last.since(event)?;
            if let (Some(phase), Some(begin)) = (*ended, begin) {
                timings.push(phase, begin, end);
            }
            begin = Some(end);
        }
        Ok(())
    }
}

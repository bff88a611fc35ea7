//! The methods of `cuzk.v1.ProvingEngine`.

use std::time::Duration;

use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, CancelProofRequest, CancelProofResponse, EvictSrsRequest, EvictSrsResponse,
    GetJobRequest, GetMetricsRequest, GetMetricsResponse, GetStatusRequest, GetStatusResponse, GetTimelineRequest,
    GetTimelineResponse, Job, ListJobsRequest, ListJobsResponse, PreloadSrsRequest, PreloadSrsResponse, ProveRequest,
    ProveResponse, SubmitProofRequest, SubmitProofResponse, WatchJobRequest, WatchStatusRequest, WatchStatusResponse,
    proving_engine_server::ProvingEngine,
};
use tonic::{Request, Response, Status};

use super::{
    convert, error,
    gate::Subject,
    receive::Received,
    streams::{self, Pictures},
    views,
};
use crate::{
    core::Interest,
    engine::{Engine, EngineError},
    proving::{Proving, Refusal},
};

/// The service on an engine. Dropping a method's future, as happens when the client cancels or its deadline passes,
/// takes the client off the list of those who wait.
pub struct Service<P: Proving> {
    engine: Engine<P>,
}

impl<P: Proving> Service<P> {
    /// A service on this engine.
    pub fn new(engine: Engine<P>) -> Self {
        Self { engine }
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl<P: Proving> ProvingEngine for Service<P> {
    async fn submit_proof(&self, mut request: Request<SubmitProofRequest>) -> Answer<SubmitProofResponse> {
        // Its bytes count as in reception until they are parsed.
        let _received = request.extensions_mut().remove::<Received>();
        let submission = convert::submission(request.into_inner()).map_err(refused)?;
        let submitted = self.engine.submit(submission).await.map_err(failed)?;
        Ok(Response::new(convert::submitted(submitted)))
    }

    async fn await_proof(&self, request: Request<AwaitProofRequest>) -> Answer<AwaitProofResponse> {
        let AwaitProofRequest { job_id, timeout_ms } = request.into_inner();
        let timeout = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
        let awaited = self.engine.await_job(&job_id, timeout).await.map_err(failed)?;
        Ok(Response::new(convert::awaited(job_id, &awaited)))
    }

    async fn prove(&self, mut request: Request<ProveRequest>) -> Answer<ProveResponse> {
        let received = request.extensions_mut().remove::<Received>();
        let submit = request.into_inner().submit;
        let submit = submit.ok_or_else(|| refused(Refusal::invalid("submit", "is not given")))?;
        let submission = convert::submission(submit).map_err(refused)?;
        let (submitted, pending) = self.engine.enter(submission, Interest::Waiting).await.map_err(failed)?;
        drop(received);
        let outcome = pending.outcome().await;
        Ok(Response::new(ProveResponse { result: Some(convert::outcome_of(submitted.job_id, &outcome)) }))
    }

    async fn cancel_proof(&self, request: Request<CancelProofRequest>) -> Answer<CancelProofResponse> {
        about(&request, &request.get_ref().job_id);
        let was_running = self.engine.cancel(&request.into_inner().job_id).map_err(failed)?;
        if was_running {
            self.engine.settle().await;
        }
        Ok(Response::new(CancelProofResponse { was_running }))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        Ok(Response::new(views::status(self.engine.view())))
    }

    async fn get_metrics(&self, _: Request<GetMetricsRequest>) -> Answer<GetMetricsResponse> {
        Ok(Response::new(GetMetricsResponse { prometheus_text: self.engine.metrics_text() }))
    }

    async fn preload_srs(&self, request: Request<PreloadSrsRequest>) -> Answer<PreloadSrsResponse> {
        about(&request, &request.get_ref().circuit_id);
        let circuit = convert::circuit(&request.into_inner().circuit_id).map_err(refused)?;
        let preloaded = self.engine.preload(circuit).await.map_err(failed)?;
        Ok(Response::new(PreloadSrsResponse {
            already_loaded: preloaded.already_loaded,
            load_time_ms: convert::millis(preloaded.load_time),
        }))
    }

    async fn evict_srs(&self, request: Request<EvictSrsRequest>) -> Answer<EvictSrsResponse> {
        about(&request, &request.get_ref().circuit_id);
        let circuit = convert::circuit(&request.into_inner().circuit_id).map_err(refused)?;
        let evicted = self.engine.evict(circuit);
        Ok(Response::new(EvictSrsResponse {
            was_loaded: evicted.was_loaded,
            freed_bytes: evicted.freed_bytes,
            in_use: evicted.in_use,
        }))
    }

    async fn list_jobs(&self, request: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        let request = request.into_inner();
        let found = self.engine.jobs(&views::filter(&request).map_err(refused)?);
        Ok(Response::new(views::jobs(found, views::limit(request.limit))))
    }

    async fn get_job(&self, request: Request<GetJobRequest>) -> Answer<Job> {
        let job = self.engine.job(&request.into_inner().job_id).map_err(failed)?;
        Ok(Response::new(views::job(job)))
    }

    async fn get_timeline(&self, request: Request<GetTimelineRequest>) -> Answer<GetTimelineResponse> {
        Ok(Response::new(views::partition_times(self.engine.partition_times(request.into_inner().from))))
    }

    type WatchJobStream = Pictures<Job>;

    async fn watch_job(&self, request: Request<WatchJobRequest>) -> Answer<Pictures<Job>> {
        let watch = self.engine.watch_job(&request.into_inner().job_id).map_err(failed)?;
        Ok(Response::new(streams::of_job(watch)))
    }

    type WatchStatusStream = Pictures<WatchStatusResponse>;

    async fn watch_status(&self, request: Request<WatchStatusRequest>) -> Answer<Pictures<WatchStatusResponse>> {
        let jobs = request.into_inner().jobs.min(views::MOST) as usize;
        Ok(Response::new(streams::of_engine(self.engine.clone(), self.engine.watch(), jobs)))
    }
}

/// Tells the audit what a call is about.
fn about<T>(request: &Request<T>, what: &str) {
    if let Some(subject) = request.extensions().get::<Subject>() {
        subject.is(what);
    }
}

fn failed(error: EngineError) -> Status {
    error::status(&error)
}

fn refused(refusal: Refusal) -> Status {
    failed(refusal.into())
}

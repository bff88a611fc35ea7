//! The engine's errors as gRPC codes: one match.

use std::time::Duration;

use tonic::{Code, Status, metadata::MetadataValue};

use crate::{
    core::Refused,
    engine::EngineError,
    proving::Refusal,
    store::{StoreError, StoreErrorKind},
};

/// The most characters of a message: it travels in a header.
const MESSAGE_CHARS: usize = 1000;
/// A disk is not emptied in seconds.
const FULL_DISK_RETRY: Duration = Duration::from_secs(60);

/// The status that a client gets.
pub(super) fn status(error: &EngineError) -> Status {
    let (code, retry_after) = match error {
        EngineError::Refused(Refusal::InvalidArgument { .. }) => (Code::InvalidArgument, None),
        EngineError::Refused(Refusal::Unimplemented(_)) => (Code::Unimplemented, None),
        EngineError::Refused(Refusal::FailedPrecondition(_)) => (Code::FailedPrecondition, None),
        EngineError::NoRoom(Refused::QueueFull { retry_after, .. } | Refused::BytesFull { retry_after, .. }) => {
            (Code::ResourceExhausted, Some(*retry_after))
        }
        EngineError::NoRoom(Refused::NeverFits { .. }) => (Code::FailedPrecondition, None),
        EngineError::NoRoom(Refused::Draining | Refused::NoDevice { .. }) => (Code::Unavailable, None),
        EngineError::UnknownJob(_) => (Code::NotFound, None),
        EngineError::ParamsLoad { .. } => (Code::FailedPrecondition, None),
        EngineError::NotKept(StoreError { kind: StoreErrorKind::Full, .. }) => {
            (Code::ResourceExhausted, Some(FULL_DISK_RETRY))
        }
        EngineError::NotKept(StoreError { kind: StoreErrorKind::Broken, .. }) => (Code::Unavailable, None),
        EngineError::Stopped => (Code::Unavailable, None),
        EngineError::Internal(_) => (Code::Internal, None),
    };
    let mut status = Status::new(code, one_line(&error.to_string()));
    if let Some(after) = retry_after {
        status.metadata_mut().insert(RETRY, millis(after));
    }
    status
}

/// The name that gRPC retry policies look for.
pub(super) const RETRY: &str = "grpc-retry-pushback-ms";

pub(super) fn millis(after: Duration) -> MetadataValue<tonic::metadata::Ascii> {
    MetadataValue::from(after.as_millis() as u64)
}

fn one_line(message: &str) -> String {
    let mut chars = message.chars().map(|c| if c.is_control() { ' ' } else { c });
    let line: String = chars.by_ref().take(MESSAGE_CHARS).collect();
    if chars.next().is_some() { line + "…" } else { line }
}

#[cfg(test)]
mod tests {
    use cuzk_synth::circuit::{CircuitId, SectorSize};

    use super::*;

    fn store_error(kind: StoreErrorKind) -> StoreError {
        StoreError { kind, reason: "/store: writing a payload: no space left on device".into() }
    }

    #[test]
    fn each_error_has_the_code_of_who_must_act() {
        let circuit = CircuitId::porep(SectorSize::Kib2);
        let full = Refused::QueueFull { jobs: 64, limit: 64, retry_after: Duration::from_secs(7) };
        let cases: [(EngineError, Code); 13] = [
            (Refusal::invalid("miner_id", "is 1, C1 says 2").into(), Code::InvalidArgument),
            (Refusal::Unimplemented("no SnapDeals".into()).into(), Code::Unimplemented),
            (Refusal::FailedPrecondition("no file".into()).into(), Code::FailedPrecondition),
            (full.clone().into(), Code::ResourceExhausted),
            (Refused::NeverFits { circuit, params: 1, partition: 2, work: 1 }.into(), Code::FailedPrecondition),
            (Refused::Draining.into(), Code::Unavailable),
            (Refused::NoDevice { circuit, reason: "gone".into() }.into(), Code::Unavailable),
            (EngineError::UnknownJob("x".into()), Code::NotFound),
            (EngineError::ParamsLoad { circuit, reason: "digest".into() }, Code::FailedPrecondition),
            (EngineError::NotKept(store_error(StoreErrorKind::Full)), Code::ResourceExhausted),
            (EngineError::NotKept(store_error(StoreErrorKind::Broken)), Code::Unavailable),
            (EngineError::Stopped, Code::Unavailable),
            (EngineError::Internal("it".into()), Code::Internal),
        ];
        for (error, code) in cases {
            assert_eq!(status(&error).code(), code, "{error}");
        }
        let full = status(&full.into());
        assert!(full.message().contains("64 jobs wait of at most 64; retry in 7 s"), "{full}");
        assert_eq!(full.metadata().get("grpc-retry-pushback-ms").unwrap(), "7000");
    }

    #[test]
    fn messages_are_one_short_line() {
        let long = EngineError::Internal(format!("a\nb{}", "x".repeat(5000)));
        let status = status(&long);
        assert!(status.message().starts_with("internal error: a bx"));
        assert_eq!(status.message().chars().count(), MESSAGE_CHARS + 1);
    }
}

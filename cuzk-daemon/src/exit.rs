//! How the program ends: one table of exit codes, and the error that carries one of them.

use std::{fmt, process::ExitCode};

use cuzk_server::store::durable::OpenError;
use tonic::Code;

use crate::{
    config::Problems,
    listen::{AddressError, BindError},
    resources::PlanError,
};

/// The program's exit codes. Scripts may rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// It did not work, for a reason that no other code stands for: a failed or cancelled proof, an I/O error.
    Failure = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// No daemon answers at the address.
    Unreachable = 3,
    /// The input is wrong, or of a kind that is not proven here: the same again will be refused again.
    Refused = 4,
    /// The daemon has no room, is draining or lacks parameters: the same again may succeed later.
    TryLater = 5,
    /// The daemon does not know the job.
    UnknownJob = 6,
    /// The daemon cannot start on its job store: it is damaged, from a later version, or open to others.
    Store = 7,
}

/// Why the program ends without success: what happened and where, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    /// The code to end with.
    pub exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Exit {
    /// The code for a call that a daemon answered with an error.
    pub fn of_code(code: Code) -> Self {
        match code {
            Code::Ok => Self::Success,
            Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => Self::Refused,
            Code::ResourceExhausted | Code::Unavailable | Code::FailedPrecondition | Code::Aborted => Self::TryLater,
            Code::NotFound => Self::UnknownJob,
            Code::DeadlineExceeded => Self::Unreachable,
            Code::Cancelled
            | Code::Unknown
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated => Self::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Failure {
    /// An error of one line.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// Adds a line that says what to do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error that the operating system reported while doing something to a file.
    pub fn io(doing: &str, path: &std::path::Path, error: std::io::Error) -> Self {
        Self::new(Exit::Failure, format!("cannot {doing} {}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(Exit::Usage, problems.to_string())
    }
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        Self::new(Exit::Usage, error.to_string())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(Exit::Usage, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let exit = match &error {
            OpenError::Damaged { .. } | OpenError::Newer { .. } | OpenError::Exposed { .. } => Exit::Store,
            // These may pass.
            OpenError::Locked { .. } | OpenError::Folder { .. } => Exit::Failure,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        Self::new(Exit::Failure, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_numbers() {
        let table = [
            (Exit::Success, 0),
            (Exit::Failure, 1),
            (Exit::Usage, 2),
            (Exit::Unreachable, 3),
            (Exit::Refused, 4),
            (Exit::TryLater, 5),
            (Exit::UnknownJob, 6),
            (Exit::Store, 7),
        ];
        for (exit, number) in table {
            assert_eq!(exit as u8, number);
        }
    }

    #[test]
    fn scripts_can_tell_whether_to_retry() {
        assert_eq!(Exit::of_code(Code::InvalidArgument), Exit::Refused);
        assert_eq!(Exit::of_code(Code::Unimplemented), Exit::Refused);
        assert_eq!(Exit::of_code(Code::ResourceExhausted), Exit::TryLater);
        assert_eq!(Exit::of_code(Code::Unavailable), Exit::TryLater);
        assert_eq!(Exit::of_code(Code::NotFound), Exit::UnknownJob);
        // Only success counts as success.
        for code in (1..=16).map(Code::from_i32) {
            assert_ne!(Exit::of_code(code), Exit::Success, "{code:?}");
        }
    }

    #[test]
    fn a_hint_is_a_line_of_its_own() {
        let failure = Failure::new(Exit::Usage, "what happened").with_hint("what to do");
        assert_eq!(failure.to_string(), "what happened\n  what to do");
    }
}

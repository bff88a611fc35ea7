//! Why an input is refused.

/// A request that cannot be proven, and whose fault that is: always the caller's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The input is wrong.
    #[error("{field}: {reason}")]
    Invalid {
        /// Where: a request field, or a path into the C1 output such as `vanilla_proofs[0][1].c_x`.
        field: String,
        /// What was expected and what was found.
        reason: String,
    },
    /// The input may be right, but this kind of proof is not built.
    #[error("{0}")]
    Unimplemented(String),
}

impl InputError {
    /// A wrong input at `field`.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), reason: reason.into() }
    }
}

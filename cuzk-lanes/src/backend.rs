//! Which arithmetic runs: eight-lane AVX-512 IFMA, or plain blst.
//!
//! The choice is a value ([`Backend`]) that every table and vector carries, so both kinds can be used side by side in one
//! process (the tests do). Callers which do not care use [`Backend::current`].

use std::sync::OnceLock;

/// Environment variable that forces a backend: `auto` (default), `ifma` or `portable`.
pub const BACKEND_VARIABLE: &str = "CUZK_CPU_BACKEND";

/// The arithmetic used by a table, a vector or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// AVX-512 IFMA, eight field elements per vector register. A value of this variant exists only after
    /// [`Backend::detect`] has seen the instructions, or through a caller who names it and is then checked again at the
    /// border of every call.
    Ifma,
    /// blst's scalar code, on any machine.
    Portable,
}

impl Backend {
    /// The best backend of this machine.
    pub fn detect() -> Self {
        if ifma_available() { Self::Ifma } else { Self::Portable }
    }

    /// The backend of this process: the environment variable [`BACKEND_VARIABLE`], read once, or else [`Self::detect`].
    ///
    /// A forced `ifma` on a machine without the instructions falls back to `portable`, as does any machine by default;
    /// an unknown word counts as `auto`.
    pub fn current() -> Self {
        static ARITH: OnceLock<Backend> = OnceLock::new();
        *ARITH.get_or_init(|| match std::env::var(BACKEND_VARIABLE).as_deref() {
            Ok("portable") => Self::Portable,
            _ => Self::detect(),
        })
    }

    /// Every backend that this machine can run, for tests that compare them.
    pub fn available() -> Vec<Self> {
        if ifma_available() { vec![Self::Ifma, Self::Portable] } else { vec![Self::Portable] }
    }

    /// `self`, or `Portable` where the machine lacks the instructions `self` asks for. The border of safe code: nothing
    /// marked with the AVX-512 features is called without a value that came through here.
    pub fn checked(self) -> Self {
        match self {
            Self::Ifma if ifma_available() => Self::Ifma,
            _ => Self::Portable,
        }
    }
}

/// Does this machine have all five AVX-512 subsets that the `ifma` module is compiled for?
/// The standard library caches the answer; a call costs a load and a test.
fn ifma_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512ifma")
}

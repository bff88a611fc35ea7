//! Panics stay in the job that they happen in.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs something; a panic in it becomes an error text that says where.
///
/// What `work` refers to is either consumed by it, or shared and the implementer's to keep consistent: [`crate::Proving`]
/// says that its methods may panic without harm to the others.
pub(super) fn caught<R>(what: &str, work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("{what} panicked: {message}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_survives() {
        assert_eq!(caught("it", || 3), Ok(3));
        assert_eq!(caught("it", || -> u8 { panic!("at {}", 7) }), Err("it panicked: at 7".into()));
        assert_eq!(caught("it", || -> u8 { panic!("plain") }), Err("it panicked: plain".into()));
        let odd = caught("it", || -> u8 { std::panic::panic_any(5_u8) });
        assert_eq!(odd, Err("it panicked: no message".into()));
    }
}

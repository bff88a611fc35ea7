//! The HTTP face of the engine, for browsers, Prometheus and load balancers: it shows, and changes nothing.
//!
//! | path | what | who may see it |
//! |---|---|---|
//! | `/` | the status page | scope read |
//! | `/events` | pictures over and over, as server-sent events | scope read |
//! | `/status.json` | one picture | scope read |
//! | `/metrics` | counters and histograms for Prometheus | scope read |
//! | `/healthz` | the process lives | anybody |
//! | `/readyz` | jobs are taken and proven; 503 and why, if not | anybody |
//! | `/login`, `/logout` | a token for a cookie, and back | anybody |
//!
//! * [`source`]: what is shown, behind a trait; `picture`: as JSON
//! * `routes`: the paths; `headers`: what goes with every answer
//! * `guard`: who may look; `login`: how a browser comes in
//! * `events`: the streams, bounded
//! * `serve`: connections and their end; `patient`: a bound on readers that do not read
//! * `page/`: the files of the status page, embedded

mod events;
mod guard;
mod headers;
mod login;
mod patient;
mod picture;
mod routes;
mod serve;
pub mod source;
#[cfg(test)]
mod tests;

pub use serve::{Server, ServerOptions};
pub use source::Source;

//! The gRPC face of the engine: service `cuzk.v1.ProvingEngine`, health and reflection, over TCP and unix sockets.
//!
//! * `convert`: wire types to the engine's and back
//! * `error`: the engine's errors as gRPC codes
//! * `service`: the methods
//! * [`views`]: what people see of the engine, as wire types
//! * `streams`: pictures over and over, to those who watch
//! * `receive`: how many bytes may be in reception at once, and what an over-size message is answered
//! * `listener`: accepting connections
//! * `gate`: who may call what; `seldom`: log lines that strangers can cause
//! * `serve`: the life of the server

mod convert;
mod error;
mod gate;
mod listener;
mod receive;
pub(crate) mod seldom;
mod serve;
mod service;
mod streams;
#[cfg(test)]
mod tests;
pub mod views;
#[cfg(test)]
mod watch_tests;

pub use listener::{Connection, Connections, Handshake, Io, Listener, Secure, Secured};
pub use serve::{ServeError, ServeOptions, serve};
pub use service::Service;

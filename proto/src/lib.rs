//! The wire contract of cuzk: package `cuzk.v1`, service `ProvingEngine`, generated from
//! `cuzk/v1/proving.proto`, whose comments are the reference.

/// Messages, client and server of package `cuzk.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod v1 {
    tonic::include_proto!("cuzk.v1");

    /// The compiled file descriptor set, for gRPC server reflection.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cuzk.v1.bin"));
}

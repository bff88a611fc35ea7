//! Compiles the `.proto` with protox (pure Rust), so that no `protoc` is needed on the build machine.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=cuzk/v1/proving.proto");
    let descriptors = protox::compile(["cuzk/v1/proving.proto"], ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Server reflection hands these bytes to generic clients such as grpcurl.
    fs::write(out.join("cuzk.v1.bin"), descriptors.encode_to_vec())?;
    // Vanilla proofs are tens of megabytes: `Bytes` shares the receive buffer instead of copying it.
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}

//! `kernels build`.

use std::time::Instant;

use cuzk_gpu::cuda::{
    CudaError,
    kernels::{
        build::{self, Built},
        nvrtc::Nvrtc,
    },
};

use crate::{
    cli::{KernelsBuildArgs, KernelsCommand},
    exit::{Exit, Failure},
};

/// Runs a `kernels` command.
pub(super) fn kernels(command: &KernelsCommand) -> Result<(), Failure> {
    match command {
        KernelsCommand::Build(args) => build(args),
    }
}

/// Compiles all modules, writes them, and prints what each kernel needs. Fails if one spills more than it may; the files
/// are written nevertheless, since such kernels are slow and not wrong.
fn build(args: &KernelsBuildArgs) -> Result<(), Failure> {
    let failed = |error: CudaError| Failure::new(Exit::Failure, error.to_string());
    let begin = Instant::now();
    let nvrtc = Nvrtc::load().map_err(failed)?;
    let built = build::compile_all(&nvrtc, &args.arch).map_err(failed)?;
    build::write(&built, &args.out).map_err(failed)?;
    print(&built);
    let (major, minor) = nvrtc.version();
    let (files, out, seconds) = (built.len(), args.out.display(), begin.elapsed().as_secs_f64());
    println!("{files} files in {out}, by NVRTC {major}.{minor}, in {seconds:.1} s");
    let spills = build::spills(&built);
    if spills.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = spills
        .iter()
        .map(|s| format!("{} in {}: {} bytes, allowed {}", s.kernel.name, s.place, s.kernel.spills, s.bound))
        .collect();
    Err(Failure::new(Exit::Failure, format!("kernels spill registers:\n  {}", lines.join("\n  "))))
}

fn print(built: &[Built]) {
    println!(
        "{:<8} {:<16} {:<36} {:>9} {:>6} {:>6} {:>6}",
        "arch", "module", "kernel", "registers", "stack", "spills", "shared"
    );
    for b in built {
        for k in &b.compiled.kernels {
            println!(
                "{:<8} {:<16} {:<36} {:>9} {:>6} {:>6} {:>6}",
                b.arch.to_string(),
                b.module.name,
                k.name,
                k.registers,
                k.stack,
                k.spills,
                k.shared
            );
        }
    }
}

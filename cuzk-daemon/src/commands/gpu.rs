//! `gpu list`: the devices of a running daemon, or the GPUs of this machine.

use cuzk_gpu::cuda::driver::{DeviceInfo, Driver};
use cuzk_proto::v1::GpuStatus;

use super::{json, remote, text};
use crate::{
    cli::{GpuCommand, GpuListArgs},
    exit::{Exit, Failure},
};

/// Lists them.
pub(super) async fn gpu(command: &GpuCommand) -> Result<(), Failure> {
    let GpuCommand::List(args) = command;
    match args.local {
        true => list_local(args),
        false => list(args).await,
    }
}

async fn list(args: &GpuListArgs) -> Result<(), Failure> {
    let status = remote::status(&args.client).await?;
    match args.json {
        true => println!("{:#}", serde_json::Value::from(json::gpus(&status.gpus))),
        false => print!("{}", text::gpus(&status.gpus, text::now_ms())),
    }
    Ok(())
}

fn list_local(args: &GpuListArgs) -> Result<(), Failure> {
    let devices = Driver::load().and_then(|driver| driver.devices());
    let devices = devices.map_err(|error| {
        Failure::new(Exit::Failure, format!("no GPU can be used here: {error}"))
            .with_hint("is the NVIDIA driver installed, and may this user open /dev/nvidia*?")
    })?;
    match args.json {
        true => println!("{:#}", serde_json::Value::from(json::gpus(&devices.iter().map(as_wire).collect::<Vec<_>>()))),
        false => print!("{}", local_table(&devices)),
    }
    Ok(())
}

fn as_wire(info: &DeviceInfo) -> GpuStatus {
    GpuStatus {
        ordinal: info.ordinal.max(0) as u32,
        name: info.name.clone(),
        uuid: info.uuid.clone(),
        pci_address: info.pci.clone(),
        vram_total_bytes: info.memory as u64,
        ..GpuStatus::default()
    }
}

fn local_table(devices: &[DeviceInfo]) -> String {
    let row = |info: &DeviceInfo| {
        let memory = text::bytes(info.memory as u64);
        vec![
            info.ordinal.to_string(),
            info.name.clone(),
            info.uuid.clone(),
            info.pci.clone(),
            memory,
            info.arch.to_string(),
        ]
    };
    text::table(&["NO", "NAME", "UUID", "PCI", "MEMORY", "ARCH"], &devices.iter().map(row).collect::<Vec<_>>())
}

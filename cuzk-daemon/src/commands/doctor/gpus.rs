//! Driver, devices, and the kernels for them.

use cuzk_gpu::cuda::{
    driver::{DeviceInfo, Driver},
    kernels::{Kernels, list::MODULES, nvrtc::Nvrtc, source::KernelModule},
};

use super::finding::Finding;
use crate::{
    commands::text,
    config::{GpuPolicy, Gpus},
};

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The CUDA version of the driver, and the devices that the configuration names.
    devices: Result<(String, Vec<Device>), String>,
    /// The version of NVRTC.
    nvrtc: Result<(i32, i32), String>,
}

#[derive(Clone, Debug)]
struct Device {
    name: String,
    memory: u64,
    /// Modules that are compiled for it already, of how many.
    kernels: [usize; 2],
}

/// Asks the driver. Allocates nothing on a device.
pub(super) fn look(gpus: &Gpus) -> Seen {
    let names: Vec<_> = gpus.devices.0.iter().map(ToString::to_string).collect();
    let found = Driver::load().and_then(|driver| Ok((driver.version().to_string(), driver.select(&names)?)));
    let kernels = Kernels::from_environment();
    let device = |info: DeviceInfo| {
        let here = provers().filter(|module| kernels.is_here(module, info.arch)).count();
        Device { name: info.to_string(), memory: info.memory as u64, kernels: [here, provers().count()] }
    };
    Seen {
        devices: found
            .map(|(version, all)| (version, all.into_iter().map(device).collect()))
            .map_err(|e| e.to_string()),
        nvrtc: Nvrtc::load().map(|nvrtc| nvrtc.version()).map_err(|e| e.to_string()),
    }
}

/// The modules that proofs are made with.
fn provers() -> impl Iterator<Item = &'static KernelModule> {
    let is_tool = |name: &str| ["bench", "check", "probe"].iter().any(|tool| name.contains(tool));
    MODULES.iter().filter(move |module| !is_tool(module.name))
}

/// Judges it, by what the configuration wants of GPUs.
pub(super) fn judge(gpus: &Gpus, seen: &Seen) -> Vec<Finding> {
    if gpus.policy == GpuPolicy::Never {
        return vec![Finding::ok("driver", "not looked for: gpus.policy is \"never\"")];
    }
    let (version, devices) = match &seen.devices {
        Ok(found) => found,
        // Who names devices means them.
        Err(reason) if gpus.policy == GpuPolicy::Required || !gpus.devices.0.is_empty() => {
            return vec![Finding::fail(
                "driver",
                reason,
                "the daemon does not start so: see gpus.policy and gpus.devices",
            )];
        }
        Err(reason) => {
            let advice =
                "proofs are made on the CPU, many times slower; set gpus.policy = \"required\" where that is no use";
            return vec![Finding::warn("driver", reason, advice)];
        }
    };
    let mut findings = vec![Finding::ok("driver", format!("CUDA {version}"))];
    let mut missing = false;
    for device in devices {
        findings.push(Finding::ok("device", format!("{}, {}", device.name, text::bytes(device.memory))));
        let [here, of] = device.kernels;
        missing |= here < of;
        let count = format!("{here} of {of} kernel modules are compiled for {}", device.name);
        findings.push(match (&seen.nvrtc, here < of) {
            (_, false) | (Ok(_), true) => Finding::ok("kernels", count),
            (Err(_), true) => {
                let advice = "the others must be compiled: install NVRTC (see below), or ship kernels made by \
                              `cuzk-daemon kernels build` and name their folder in CUZK_KERNELS";
                Finding::fail("kernels", count, advice)
            }
        });
    }
    findings.push(match (&seen.nvrtc, missing) {
        (Ok((major, minor)), true) => {
            Finding::ok("nvrtc", format!("{major}.{minor}; the first start compiles what is missing"))
        }
        (Ok((major, minor)), false) => Finding::ok("nvrtc", format!("{major}.{minor}")),
        (Err(_), false) => Finding::ok("nvrtc", "not here, and not needed: all kernels are compiled"),
        (Err(reason), true) => Finding::fail("nvrtc", reason, "`pip install nvidia-cuda-nvrtc` brings it"),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::{
        super::finding::{
            Level::{Fail, Ok as Good, Warn},
            levels,
        },
        *,
    };
    use crate::config::{DeviceName, OneOrMany};

    fn seen(kernels: usize, nvrtc: bool) -> Seen {
        let device = Device { name: "H200".into(), memory: 141 << 30, kernels: [kernels, 9] };
        Seen {
            devices: Ok(("13.0".into(), vec![device])),
            nvrtc: if nvrtc { Ok((13, 0)) } else { Err("no NVRTC".into()) },
        }
    }

    #[test]
    fn a_device_needs_kernels_or_a_compiler() {
        let judged = |kernels, nvrtc| levels(&judge(&Gpus::default(), &seen(kernels, nvrtc)));
        assert_eq!(judged(9, true), [Good; 4]);
        assert_eq!(judged(9, false), [Good; 4]);
        assert_eq!(judged(3, true), [Good; 4]);
        assert_eq!(judged(3, false), [Good, Good, Fail, Fail]);
    }

    #[test]
    fn no_driver_is_as_bad_as_the_configuration_says() {
        let none = Seen { devices: Err("no NVIDIA driver".into()), nvrtc: Err("no NVRTC".into()) };
        let judged = |gpus: &Gpus| levels(&judge(gpus, &none));
        assert_eq!(judged(&Gpus::default()), [Warn]);
        assert_eq!(judged(&Gpus { policy: GpuPolicy::Required, ..Gpus::default() }), [Fail]);
        assert_eq!(judged(&Gpus { devices: OneOrMany(vec![DeviceName::Index(0)]), ..Gpus::default() }), [Fail]);
        assert_eq!(judged(&Gpus { policy: GpuPolicy::Never, ..Gpus::default() }), [Good]);
    }

    #[test]
    fn benches_and_checks_are_no_provers() {
        let names: Vec<_> = provers().map(|module| module.name).collect();
        assert!(names.contains(&"msm_accumulate") && !names.contains(&"field_bench"), "{names:?}");
    }
}

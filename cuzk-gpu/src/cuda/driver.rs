//! The driver: whether it is there, and the devices that it shows.

use std::{ffi::c_int, fmt};

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};
use libloading::Library;

use super::{
    error::{CudaError, Version, check},
    kernels::Arch,
};

/// Proof that the driver's library is loaded and initialized. `CUDA_VISIBLE_DEVICES` is honoured by the driver itself.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    version: Version,
}

/// A device as the driver shows it. Nothing is allocated on it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The driver's number for it; depends on `CUDA_VISIBLE_DEVICES`.
    pub ordinal: i32,
    /// Product name.
    pub name: String,
    /// `GPU-…`, the same on every start and as nvidia-smi prints it.
    pub uuid: String,
    /// PCI address, `0000:00:00.0`.
    pub pci: String,
    /// Architecture.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Highest clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of shared memory that one block may ask for.
    pub shared_per_block: u32,
}

/// The oldest driver interface that is used: parameter sizes of kernels are asked for since 12.4.
const OLDEST: Version = Version(12040);

impl Driver {
    /// Loads and initializes the driver. Can be called any number of times.
    ///
    /// # Errors
    /// No driver, a driver that is too old, or one that does not start (such as with no device at all).
    pub fn load() -> Result<Self, CudaError> {
        probe()?;
        let mut version = 0;
        // SAFETY: the library is there (probed above), and the pointer is to a live integer.
        check(unsafe { sys::cuDriverGetVersion(&mut version) }, "driver", "cuDriverGetVersion", || "at start".into())?;
        let version = Version(version);
        if version < OLDEST {
            return Err(CudaError::OldDriver { found: version, needed: OLDEST });
        }
        // SAFETY: takes no pointers.
        match unsafe { sys::cuInit(0) } {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => Err(CudaError::NoDevice(hidden_hint())),
            code => check(code, "driver", "cuInit", || "at start".into()).map(|()| Self { version }),
        }
    }

    /// The CUDA version that the driver offers.
    pub fn version(&self) -> Version {
        self.version
    }

    /// All devices that the driver shows, in its order. There is at least one.
    ///
    /// # Errors
    /// No device is visible, or a call failed.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>, CudaError> {
        let mut count = 0;
        // SAFETY: the driver is initialized, and the pointer is to a live integer.
        check(unsafe { sys::cuDeviceGetCount(&mut count) }, "driver", "cuDeviceGetCount", || "at start".into())?;
        if count == 0 {
            return Err(CudaError::NoDevice(hidden_hint()));
        }
        (0..count).map(describe).collect()
    }

    /// The devices that `names` select, in that order; all if there are no names. A name is an ordinal, a UUID or the
    /// beginning of one, or a PCI address.
    ///
    /// # Errors
    /// As [`Self::devices`]; a name that selects no device or several; an architecture without kernels.
    pub fn select(&self, names: &[String]) -> Result<Vec<DeviceInfo>, CudaError> {
        let devices = select(self.devices()?, names)?;
        match devices.iter().find(|d| !d.arch.is_supported()) {
            Some(d) => Err(CudaError::UnsupportedArch { device: d.to_string(), arch: d.arch }),
            None => Ok(devices),
        }
    }
}

/// Whether the driver's library can be loaded, by every name that the bindings will try: they panic if it cannot.
fn probe() -> Result<(), CudaError> {
    for name in cudarc::get_lib_name_candidates("cuda") {
        // SAFETY: loading NVIDIA's driver library runs its initializers, which is what using it means.
        if let Ok(library) = unsafe { Library::new(name) } {
            // The bindings load it again; closing and re-opening a driver is asking for trouble.
            std::mem::forget(library);
            return Ok(());
        }
    }
    Err(CudaError::NoDriver("neither libcuda.so nor libcuda.so.1 can be loaded".to_owned()))
}

fn hidden_hint() -> String {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(value) => format!("the driver shows none (CUDA_VISIBLE_DEVICES={value:?} may hide them)"),
        Err(_) => "the driver shows none (are the device files in this container?)".to_owned(),
    }
}

fn describe(ordinal: c_int) -> Result<DeviceInfo, CudaError> {
    let what = || format!("device {ordinal}");
    let mut device: CUdevice = 0;
    let mut name = [0u8; 256];
    let mut pci = [0u8; 32];
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    let mut memory = 0;
    // SAFETY: the driver is initialized; every pointer is to live memory of the length that is passed beside it.
    unsafe {
        check(sys::cuDeviceGet(&mut device, ordinal), "driver", "cuDeviceGet", what)?;
        check(sys::cuDeviceGetName(name.as_mut_ptr().cast(), 256, device), "driver", "cuDeviceGetName", what)?;
        check(sys::cuDeviceGetPCIBusId(pci.as_mut_ptr().cast(), 32, device), "driver", "cuDeviceGetPCIBusId", what)?;
        check(sys::cuDeviceGetUuid_v2(&mut uuid, device), "driver", "cuDeviceGetUuid", what)?;
        check(sys::cuDeviceTotalMem_v2(&mut memory, device), "driver", "cuDeviceTotalMem", what)?;
    }
    let attribute = |attribute: Attribute| {
        let mut value = 0;
        // SAFETY: as above.
        let result = unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, device) };
        check(result, "driver", "cuDeviceGetAttribute", || format!("device {ordinal}, {attribute:?}"))?;
        Ok::<_, CudaError>(value.unsigned_abs())
    };
    Ok(DeviceInfo {
        ordinal,
        name: text(&name),
        uuid: format_uuid(uuid.bytes.map(|b| b as u8)),
        pci: text(&pci).to_lowercase(),
        arch: Arch::new(
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        sms: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory,
        shared_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
    })
}

/// The bytes up to the first zero, as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

fn format_uuid(bytes: [u8; 16]) -> String {
    let hex = hex::encode(bytes);
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn select(devices: Vec<DeviceInfo>, names: &[String]) -> Result<Vec<DeviceInfo>, CudaError> {
    if names.is_empty() {
        return Ok(devices);
    }
    let known = || devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut chosen = Vec::<DeviceInfo>::new();
    for name in names {
        let mut matching = devices.iter().filter(|d| d.is_named(name));
        let (Some(device), None) = (matching.next(), matching.next()) else {
            return Err(CudaError::NoDevice(format!("{name:?} names no device or several; there are: {}", known())));
        };
        if chosen.contains(device) {
            return Err(CudaError::NoDevice(format!("{name:?} names {device} a second time")));
        }
        chosen.push(device.clone());
    }
    Ok(chosen)
}

impl DeviceInfo {
    fn is_named(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        name == self.ordinal.to_string()
            || lower == self.pci
            || (lower.len() > "gpu-".len() && self.uuid.to_lowercase().starts_with(&lower))
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} at {}, {})", self.name, self.uuid, self.pci, self.arch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices() -> Vec<DeviceInfo> {
        (0..2u8)
            .map(|i| DeviceInfo {
                ordinal: i.into(),
                name: "Some GPU".into(),
                uuid: format_uuid([0xa0 + i; 16]),
                pci: format!("0000:0{i}:00.0"),
                arch: Arch::new(9, 0),
                sms: 132,
                clock_khz: 1_980_000,
                memory: 1 << 36,
                shared_per_block: 232_448,
            })
            .collect()
    }

    fn ordinals(names: &[&str]) -> Result<Vec<i32>, String> {
        let names: Vec<_> = names.iter().map(|n| (*n).to_owned()).collect();
        let chosen = select(devices(), &names).map_err(|e| e.to_string())?;
        Ok(chosen.iter().map(|d| d.ordinal).collect())
    }

    #[test]
    fn devices_are_chosen_by_number_uuid_or_address() {
        assert_eq!(ordinals(&[]), Ok(vec![0, 1]));
        assert_eq!(ordinals(&["1"]), Ok(vec![1]));
        assert_eq!(ordinals(&["1", "GPU-A0a0"]), Ok(vec![1, 0]));
        assert_eq!(ordinals(&["0000:01:00.0"]), Ok(vec![1]));
        for bad in [&["2"][..], &["GPU-"], &["GPU-b"], &["GPU-a"], &["0", "0000:00:00.0"]] {
            let error = ordinals(bad).expect_err("selects nothing, or not one");
            assert!(error.contains(bad[bad.len() - 1]), "{error}");
        }
    }

    #[test]
    fn a_machine_without_driver_gets_a_message_and_no_panic() {
        match Driver::load() {
            Ok(driver) => assert!(driver.version() >= OLDEST),
            Err(error) => assert!(error.to_string().starts_with("no "), "{error}"),
        }
    }
}

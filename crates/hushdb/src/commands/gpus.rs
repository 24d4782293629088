//! The GPUs of this machine, for people.

use std::fmt;

use serde::Serialize;

use crate::report;

/// The GPUs of this machine.
#[derive(Serialize)]
pub(crate) struct Gpus {
    /// The version of CUDA that the driver supports.
    pub(crate) driver: Option<String>,
    pub(crate) devices: Vec<GpuReport>,
    /// The reason why no GPU is used, if none is.
    pub(crate) unused_because: Option<String>,
}

/// A GPU.
#[derive(Serialize)]
pub(crate) struct GpuReport {
    name: String,
    capability: String,
    multiprocessors: u32,
    memory_bytes: usize,
    /// The number of free bytes, or the reason why the GPU is not used.
    pub(crate) free_bytes: Result<usize, String>,
}

impl fmt::Display for GpuReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, capability, multiprocessors, memory_bytes, free_bytes } = self;
        write!(f, "{name}, compute capability {capability}, {multiprocessors} multiprocessors, ")?;
        match free_bytes {
            Ok(free) => {
                write!(f, "{} of {} free", report::bytes(*free as u64), report::bytes(*memory_bytes as u64))
            }
            Err(reason) => write!(f, "not used: {reason}"),
        }
    }
}

/// Returns all GPUs that the driver lists or that are emulated, including unusable ones.
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(crate) fn gpus() -> Gpus {
    use hush_cuda::device::{Device, DeviceInfo};
    let used = hush_engine::open_devices();
    let describe = |info: &DeviceInfo, device: Result<&Device, String>| GpuReport {
        name: info.name.clone(),
        capability: format!("{}.{}", info.capability.0, info.capability.1),
        multiprocessors: info.multiprocessors,
        memory_bytes: info.memory_bytes,
        free_bytes: device.and_then(|device| device.free_bytes().map_err(|error| error.to_string())),
    };
    let listed = Device::list().unwrap_or_default();
    // The driver does not list the emulator.
    let others = used.iter().flatten().filter(|device| !listed.contains(device.info()));
    let mut devices: Vec<_> = others.map(|device| describe(device.info(), Ok(device))).collect();
    for (ordinal, info) in listed.iter().enumerate() {
        let device = Device::open(ordinal).map_err(|error| error.to_string());
        devices.push(describe(info, device.as_ref().map_err(String::clone)));
    }
    Gpus {
        driver: Device::driver_version().ok().map(|(major, minor)| format!("{major}.{minor}")),
        devices,
        unused_because: used.err().map(|error| error.to_string()),
    }
}

#[cfg(not(any(feature = "cuda", feature = "emulator")))]
pub(crate) fn gpus() -> Gpus {
    let reason = hush_engine::BackendError::NotBuilt.to_string();
    Gpus { driver: None, devices: Vec::new(), unused_because: Some(reason) }
}

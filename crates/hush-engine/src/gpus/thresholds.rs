//! Thresholds between the kernels of a GPU, measured on one of its kind. Each kind has a file in the user's cache directory, which
//! `hush-bench gpu-thresholds` writes and every program reads that opens the GPU.

use std::{fs, io, path::PathBuf, process};

use etcetera::BaseStrategy;
use hush_cuda::{
    Cuda, Thresholds,
    device::{Device, DeviceInfo},
};
use serde::{Deserialize, Serialize};

/// The content of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    device: String,
    thresholds: Thresholds,
}

/// The version of the format, raised when a kernel changes so much that it must be measured again.
const VERSION: u32 = 2;

/// Creates a backend on `device`, with the thresholds that were measured on one of its kind.
pub fn suited_backend(device: Device) -> Cuda {
    let thresholds = measured_thresholds(device.info());
    let cuda = Cuda::new(device);
    match thresholds {
        Some(thresholds) => cuda.with_thresholds(thresholds),
        None => cuda,
    }
}

/// Returns the thresholds that were measured on such a device. `None` if the file cannot be read or is of another version.
pub fn measured_thresholds(info: &DeviceInfo) -> Option<Thresholds> {
    read(&fs::read_to_string(thresholds_file(info)?).ok()?, info)
}

/// Returns the file of a device: in `hushdb/gpus` of `$XDG_CACHE_HOME` or `~/.cache`. `None` if no home directory is known.
fn thresholds_file(info: &DeviceInfo) -> Option<PathBuf> {
    let cache = etcetera::choose_base_strategy().ok()?.cache_dir();
    Some(
        cache.join("hushdb/gpus").join(
            info.name
                .chars()
                .map(|c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .collect::<String>()
                + ".json",
        ),
    )
}

/// Writes the thresholds for all devices of this name, whole or not at all. Returns the path.
///
/// # Errors
/// Returns the error of the system, or an error if no home directory is known.
pub fn keep_thresholds(info: &DeviceInfo, thresholds: Thresholds) -> io::Result<PathBuf> {
    let path = thresholds_file(info).ok_or_else(|| io::Error::other("no home directory is known"))?;
    let partial = path.with_extension(format!("{}.partial", process::id()));
    fs::create_dir_all(path.parent().expect("it is in a folder"))?;
    let written = fs::write(&partial, text(info, thresholds)).and_then(|()| fs::rename(&partial, &path));
    if written.is_err() {
        // The failed write is reported. That there may be nothing to remove does not matter.
        let _ = fs::remove_file(&partial);
    }
    written.map(|()| path)
}

fn text(info: &DeviceInfo, thresholds: Thresholds) -> String {
    let kept = Kept { version: VERSION, device: info.name.clone(), thresholds };
    serde_json::to_string_pretty(&kept).expect("plain data") + "\n"
}

fn read(text: &str, info: &DeviceInfo) -> Option<Thresholds> {
    let kept: Kept = serde_json::from_str(text).ok()?;
    let is_it = kept.version == VERSION && kept.device == info.name;
    is_it.then_some(kept.thresholds)
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use hush_cuda::device::Emulation;

    use super::*;

    #[test]
    fn what_is_kept_is_read_for_the_same_device_and_version() {
        let info = Device::emulated(Emulation::default()).info().clone();
        let thresholds = Thresholds { mma_from: 3, hopper_from: 17 };
        let kept = text(&info, thresholds);
        assert_eq!(read(&kept, &info), Some(thresholds));
        assert_eq!(read(&kept, &DeviceInfo { name: "another".into(), ..info.clone() }), None);
        for (from, to) in [("\"version\": 2", "\"version\": 0"), ("17", "-17"), ("\"mma_from\"", "\"mma\"")] {
            let changed = kept.replace(from, to);
            assert_ne!(changed, kept);
            assert_eq!(read(&changed, &info), None, "{changed}");
        }
    }
}

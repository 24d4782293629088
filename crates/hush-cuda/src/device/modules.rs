//! The compiled kernels in the program, and the choice of kernels for a GPU.

use std::cmp::Reverse;

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The target for which a module is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// Text (PTX) that the driver compiles, for every GPU of compute capability 8.0 or later.
    Compute80,
    /// Machine code for compute capability 8.x (Ampere, Ada).
    Sm80,
    /// Machine code for compute capability 9.0 (Hopper) only.
    Sm90a,
}

impl Target {
    fn runs_on(self, capability: (u32, u32)) -> bool {
        match self {
            Self::Compute80 => capability >= (8, 0),
            Self::Sm80 => capability.0 == 8,
            Self::Sm90a => capability == (9, 0),
        }
    }
}

/// An alignment wrapper: machine code is an ELF file, whose parts are aligned.
#[repr(C, align(64))]
struct Aligned<T>(T);

/// A module for one target, in the form that the driver loads.
pub(super) struct Image {
    name: &'static str,
    target: Target,
    kernels: &'static [&'static str],
    bytes: &'static [u8],
}

impl Image {
    /// Returns the module's name, which is that of its source file.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the names of the module's kernels.
    pub(super) fn kernels(&self) -> &'static [&'static str] {
        self.kernels
    }

    /// Returns the address of a whole cubin, or of text that ends with a zero.
    pub(super) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// Returns every module that a GPU of this compute capability runs. If a module has both machine code and text, machine code is
/// chosen.
pub(super) fn images_for(capability: (u32, u32)) -> Vec<&'static Image> {
    let mut images: Vec<_> = IMAGES.iter().filter(|image| image.target.runs_on(capability)).collect();
    images.sort_by_key(|image| (image.name, Reverse(image.target)));
    images.dedup_by_key(|image| image.name);
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(kernel: &str, capability: (u32, u32)) -> Option<Target> {
        let images = images_for(capability);
        images.iter().find(|image| image.kernels.contains(&kernel)).map(|image| image.target)
    }

    #[test]
    fn a_gpu_gets_its_machine_code_and_a_later_one_gets_text() {
        for (capability, target) in [
            ((8, 0), Target::Sm80),
            ((8, 9), Target::Sm80),
            ((9, 0), Target::Sm90a),
            ((10, 0), Target::Compute80),
            ((12, 1), Target::Compute80),
        ] {
            assert_eq!(target_of("floor_read", capability), Some(target), "{capability:?}");
        }
        assert_eq!(target_of("floor_read", (7, 5)), None);
        assert_eq!(target_of("no_such_kernel", (9, 0)), None);
    }

    #[test]
    fn kernels_of_hopper_are_for_hopper_alone() {
        assert_eq!(target_of("floor_bulk_hopper", (9, 0)), Some(Target::Sm90a));
        assert_eq!(target_of("floor_bulk_hopper", (8, 9)), None);
        assert_eq!(target_of("floor_bulk_hopper", (10, 0)), None);
    }

    #[test]
    fn images_are_what_they_are_called() {
        for image in IMAGES {
            match image.target {
                Target::Compute80 => assert!(image.bytes.starts_with(b"//") && image.bytes.ends_with(b"\0")),
                Target::Sm80 | Target::Sm90a => assert!(image.bytes.starts_with(b"\x7fELF")),
            }
        }
    }
}

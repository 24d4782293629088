//! Every step on the CUDA backend, in the emulator and on a GPU if there is one: word for word what the reference backend makes.

#[path = "../devices/mod.rs"]
mod devices;
#[path = "../made/mod.rs"]
mod made;

mod answers;
mod baselines;
mod column;
mod coverage;
mod device;
#[cfg(feature = "driver")]
mod driver;
mod empty;
mod gadget;
mod grids;
mod large;
mod lwe;
mod pack;
mod presets;
mod ring_core;
mod rlwe_fold;

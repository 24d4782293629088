//! Conformance bodies, generators, an AMX emulator (tests only).

pub mod amx_emulator;
pub mod conformance;

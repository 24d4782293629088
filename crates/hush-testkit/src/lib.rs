//! For tests only: conformance bodies, an AMX emulator, and a backend without encryption.

pub mod amx_emulator;
pub mod conformance;
pub mod plain;

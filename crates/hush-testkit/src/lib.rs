//! For tests only: conformance bodies, an AMX emulator, requests to valgrind, and a backend without encryption.

pub mod amx_emulator;
pub mod conformance;
pub mod memcheck;
pub mod plain;

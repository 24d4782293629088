//! LWE entities (one noun a file), algorithms (one verb a file) and parameters (checked, with noise and security).

pub mod algorithms;
pub mod codec;
pub mod entities;
mod error;
pub mod params;

pub use error::HeError;

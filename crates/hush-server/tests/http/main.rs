//! Real HTTP on loopback against a small engine whose answers can be checked.

mod batching;
mod client;
mod connections;
mod engine;
mod epochs;
mod files;
mod gateway;
mod harness;
mod hostile;
mod hosts;
mod keys;
#[path = "../../../../vectors/negatives.rs"]
mod negative_vectors;
mod negatives;
mod origins;
mod queries;
mod shutdown;
mod tables;

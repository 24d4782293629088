//! All tests of protocols, one program: tables in memory ([`support`]) on the backends, and facts of tables without one.

mod codes;
mod descriptor;
mod facts;
mod failures;
mod geometry;
mod hostile;
mod limits;
mod look_ups;
mod messages;
#[path = "../../../../vectors/negatives.rs"]
mod negative_vectors;
mod negatives;
mod noise;
mod parts;
mod paths;
mod secrecy;
mod shapes;
mod sizes;
mod support;
mod vectors;

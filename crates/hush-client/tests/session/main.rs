//! The session driven by a script: every request is answered in process, and time passes only when a test says so.

mod driver;
mod epochs;
mod gateway;
mod hints;
mod hostile;
#[path = "../samples/kept_hints.rs"]
mod kept_hints;
mod keys;
mod local;
#[path = "../samples/message.rs"]
mod message;
#[path = "../../../../vectors/negatives.rs"]
mod negative_vectors;
mod negatives;
mod prepared;
mod proxies;
mod retries;
#[path = "../samples/ring_sample.rs"]
mod ring_sample;
mod sameness;
#[path = "../samples/sample.rs"]
mod sample;

use hush_client::{
    Found, Wanted,
    session::{Session, SessionError},
};
use hush_he::params::DEFAULT_LWE;

use driver::Driver;
use sample::Sample;

const QUERY: &str = "/query";

fn sample(version: u8) -> Sample {
    Sample::new(version, DEFAULT_LWE)
}

fn indices(wanted: &[u64]) -> Vec<Wanted> {
    wanted.iter().copied().map(Wanted::Index).collect()
}

/// Opens the table of `driver`'s server.
fn open(driver: &mut Driver) -> Result<Session, SessionError> {
    let task = driver.connect();
    let server = driver.drive(task)?;
    // Whoever trusts a publisher says which of its tables.
    driver.drive(server.open(driver.options.acceptance.trust.as_ref().map(|_| sample::NAME)))
}

/// Opens the table of `driver`'s server and looks records up.
fn look_up(driver: &mut Driver, wanted: &[u64]) -> Result<Vec<Found>, SessionError> {
    let mut session = open(driver)?;
    driver.drive(session.look_up(&indices(wanted)))
}

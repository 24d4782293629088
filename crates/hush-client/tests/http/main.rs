//! The transport against a server on loopback that fails in every way it can.

mod calls;
mod hint;
mod lookups;
#[path = "../samples/message.rs"]
mod message;
mod onion;
#[path = "../samples/ring_sample.rs"]
mod ring_sample;
#[path = "../samples/sample.rs"]
mod sample;
mod server;

use std::{fs, path::Path, time::Duration};

use hush_client::http::{HintCache, HttpClient, HttpError, HttpOptions, HttpTable, RetryPolicy};
use hush_he::params::DEFAULT_LWE;

use sample::Sample;

/// Three attempts with hardly a wait.
fn options(cache: &Path) -> HttpOptions {
    let wait = Duration::from_millis(1);
    HttpOptions {
        cache: HintCache::Directory(cache.to_owned()),
        retry: RetryPolicy { attempts: 3, first_wait: wait, max_wait: wait, ..RetryPolicy::default() },
        ..HttpOptions::default()
    }
}

fn open(url: &str, cache: &Path) -> Result<HttpTable, HttpError> {
    HttpClient::connect(url, options(cache))?.open(None)
}

fn sample(version: u8) -> Sample {
    Sample::new(version, DEFAULT_LWE)
}

/// Returns the names of the files in `directory`.
fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

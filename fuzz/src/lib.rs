//! Fuzz targets: one for every decoder of bytes that someone else made.
//!
//! A target is a function of an input, here, and a program of libFuzzer that calls it, in `targets/`. It panics if the decoder
//! breaks its promise: what it takes comes back when it is encoded again, what it gives is in range, and what it allocates is
//! bounded by what it was given. `make fuzz` runs all of them; `tests/corpora.rs` gives each the inputs of its corpus.
//!
//! | file | whose bytes |
//! |------|------|
//! | `wire.rs` | messages of clients and servers |
//! | `ciphertexts.rs` | what is inside of them: words, keys, answers, values |
//! | `descriptor.rs` | descriptors of tables |
//! | `client.rs` | servers that answer anything; files in a client's cache |
//! | `server.rs` | headers of requests |
//! | `cli.rs` | keys on the command line and in files |
//! | `ingest.rs` | tables to be built |
//! | `snapshot.rs` | built tables, and what a killed build leaves |

mod allocation;
pub mod ciphertexts;
pub mod cli;
pub mod client;
pub mod descriptor;
pub mod ingest;
mod input;
mod place;
pub mod sample;
pub mod server;
pub mod snapshot;
pub mod wire;

use std::sync::Once;

/// Work that would be spread over threads is done by this one: no input is large.
fn on_one_thread() {
    static POOL: Once = Once::new();
    POOL.call_once(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        pool.build_global().expect("nobody was earlier");
    });
}

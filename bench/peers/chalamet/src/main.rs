//! `hush-peers-chalamet`: ChalametPIR on the records of `hush-peers`, which starts this program. Prints one JSON row.

use std::{collections::HashMap, env, process::ExitCode, time::Instant};

use chalametpir_client::{Client, SEED_BYTE_LEN};
use chalametpir_server::Server;
use hush_peers_common::{Answered, Costs, Error, Records, Row, Scheme, measure};

/// The seed of the public matrix. The time of a look-up does not depend on it.
const SEED: [u8; SEED_BYTE_LEN] = [7; SEED_BYTE_LEN];

/// A server of ChalametPIR, and a client of it.
struct Chalamet<'a> {
    records: &'a Records,
    server: Server,
    client: Client,
}

impl<'a> Chalamet<'a> {
    /// Builds a table with a filter of three slots a key. Returns it with its fixed costs.
    fn new(records: &'a Records) -> Result<(Self, Costs), Error> {
        let keys: Vec<_> = (0..records.count()).map(|index| records.key(index)).collect();
        let start = Instant::now();
        let table: HashMap<&[u8], &[u8]> =
            keys.iter().enumerate().map(|(index, key)| (key.as_slice(), records.record(index))).collect();
        let (server, hint, filter) = Server::setup::<3>(&SEED, table)?;
        let setup_seconds = start.elapsed().as_secs_f64();
        let offline_bytes = SEED.len() + hint.len() + filter.len();
        let client = Client::setup(&SEED, &hint, &filter)?;
        Ok((Self { records, server, client }, Costs { setup_seconds, offline_bytes, key_bytes: 0 }))
    }
}

impl Scheme for Chalamet<'_> {
    type Query = Vec<u8>;
    type Pending = Vec<u8>;
    type Answer = Vec<u8>;

    fn query(&mut self, index: usize) -> Result<(Vec<u8>, usize, Vec<u8>), Error> {
        // A query fails with a small probability, where an addition to the ciphertext overflows. A client tries again.
        let key = self.records.key(index);
        let mut made = self.client.query(&key);
        for _ in 0..100 {
            if made.is_ok() {
                break;
            }
            made = self.client.query(&key);
        }
        let query = made?;
        let bytes = query.len();
        Ok((query, bytes, key))
    }

    fn answer(&mut self, query: &Vec<u8>) -> Result<Answered<Vec<u8>>, Error> {
        let answer = self.server.respond(query)?;
        Ok(Answered { bytes: answer.len(), answer, ..Answered::default() })
    }

    fn decode(&mut self, key: Vec<u8>, answer: &Vec<u8>) -> Result<Vec<u8>, Error> {
        Ok(self.client.process_response(&key, answer)?)
    }
}

/// Measures a table of the shape that the arguments tell: records, bytes of a record, runs.
fn run() -> Result<(), Error> {
    let numbers = env::args().skip(1).map(|word| word.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [count, record_bytes, runs] = numbers[..] else {
        return Err("usage: hush-peers-chalamet RECORDS RECORD_BYTES RUNS (start hush-peers instead)".into());
    };
    let records = Records::new(count, record_bytes);
    let (mut scheme, costs) = Chalamet::new(&records)?;
    let row = measure(&mut scheme, &costs, &records, runs)?;
    let what = "LWE with a binary fuse filter, 3 slots a key".into();
    let row = Row { peer: "chalametpir".into(), version: "0.8.0".into(), what, ..row };
    println!("{}", serde_json::to_string(&row)?);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hush-peers-chalamet: {error}");
            ExitCode::FAILURE
        }
    }
}

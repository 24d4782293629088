//! The experimental path of `ipir-sp`: a modulus of a power of two, and ReinspiRING packing.

use std::time::Instant;

use hush_peers_common::{Answered, Costs, Error, Row, Scheme, measure};
use ipir_sp::native::{
    NativePreparedPublished, NativeProfile, NativePublicSetup, NativePublished, NativeRequest, NativeServer,
};
use reinspiring::native::{NativeParams, SecretDistribution};

use super::ipir::{SEED, VERSION};
use crate::shape::{DEGREE, RowTable};

/// The bits of a word of the table.
const WORD_BITS: usize = 16;
/// The bits of the modulus.
const MODULUS_BITS: u32 = 54;
/// The bits of a digit of the gadget.
const DIGIT_BITS: u32 = 19;
/// The number of digits of the gadget, as in the crate's own measurements.
const DIGITS: usize = 2;

/// A server of the path, and a client of it.
struct Native<'a> {
    table: &'a RowTable,
    server: &'a NativeServer,
    published: NativePreparedPublished,
}

/// Measures the path.
pub(crate) fn run(table: &RowTable, runs: usize) -> Result<Row, Error> {
    let start = Instant::now();
    let secret = SecretDistribution::Gaussian;
    let packing = NativeParams::new(DEGREE, MODULUS_BITS, WORD_BITS as u32, DIGIT_BITS, DIGITS, secret)?;
    let rows = table.rows.next_multiple_of(DEGREE);
    let columns = table.row_bits(WORD_BITS).div_ceil(WORD_BITS).next_multiple_of(DEGREE);
    let setup = NativePublicSetup::new(NativeProfile::new(packing, rows, columns)?, SEED, SEED);
    let server = NativeServer::build(setup, by_columns(table, rows, columns))?;
    let masks = server.published().to_bytes();
    let costs = Costs {
        setup_seconds: start.elapsed().as_secs_f64(),
        offline_bytes: 2 * SEED.len() + masks.len(),
        key_bytes: 0,
    };
    let published = NativePublished::from_bytes(server.setup(), &masks)?.prepare(server.setup())?;
    let mut scheme = Native { table, server: &server, published };
    let row = measure(&mut scheme, &costs, &table.records, runs);
    let row = row.map_err(|error| format!("ipir-sp native: {error}"))?;
    let what = format!("native p16 (experimental), {rows} x {columns}");
    Ok(Row { peer: "ipir-sp".into(), version: VERSION.into(), what, ..row })
}

/// Returns the words of the table, column by column.
fn by_columns(table: &RowTable, rows: usize, columns: usize) -> Vec<u16> {
    let mut words = vec![0; rows * columns];
    for (place, word) in table.words(rows, columns, WORD_BITS).enumerate() {
        words[place % columns * rows + place / columns] = word;
    }
    words
}

impl Scheme for Native<'_> {
    type Query = Vec<u8>;
    type Pending = (usize, NativeRequest);
    type Answer = Vec<u8>;

    fn query(&mut self, index: usize) -> Result<(Vec<u8>, usize, Self::Pending), Error> {
        let mut request = NativeRequest::generate(self.server.setup(), self.table.row(index))?;
        request.prepare_decode(&self.published)?;
        let query = request.bytes().to_vec();
        let bytes = query.len();
        Ok((query, bytes, (index, request)))
    }

    fn answer(&mut self, query: &Vec<u8>) -> Result<Answered<Vec<u8>>, Error> {
        let (answer, times) = self.server.respond(query)?;
        Ok(Answered {
            bytes: answer.len(),
            answer,
            scan_ms: Some(times.matrix_vector.as_secs_f64() * 1e3),
            pack_ms: Some(times.packing.as_secs_f64() * 1e3),
        })
    }

    fn decode(&mut self, (index, request): Self::Pending, answer: &Vec<u8>) -> Result<Vec<u8>, Error> {
        let words = request.decode_prepared(&self.published, answer)?;
        Ok(self.table.record(index, &words, WORD_BITS))
    }
}

//! The work that every scheme does, and its measurement.

use std::time::Instant;

use crate::{Records, Row};

/// Any error.
pub type Error = Box<dyn std::error::Error>;

/// The fixed costs of a scheme for one table.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// The seconds from the records in memory to a server that answers.
    pub setup_seconds: f64,
    /// The bytes that a client downloads once for a table.
    pub offline_bytes: usize,
    /// The bytes of the keys that a client uploads once.
    pub key_bytes: usize,
}

/// An answer, and the times of its parts if the peer tells them.
#[derive(Default)]
pub struct Answered<A> {
    /// The answer, as the client decodes it.
    pub answer: A,
    /// The bytes of the answer.
    pub bytes: usize,
    /// The milliseconds that read the table.
    pub scan_ms: Option<f64>,
    /// The milliseconds that pack ciphertexts.
    pub pack_ms: Option<f64>,
}

/// A server and a client of one table.
pub trait Scheme {
    /// A query, as the server takes it.
    type Query;
    /// The client's state of a look-up.
    type Pending;
    /// An answer, as the client takes it.
    type Answer;

    /// Makes a query for the record at `index`. Returns it with the bytes that it takes on the wire.
    fn query(&mut self, index: usize) -> Result<(Self::Query, usize, Self::Pending), Error>;

    /// Answers a query.
    fn answer(&mut self, query: &Self::Query) -> Result<Answered<Self::Answer>, Error>;

    /// Decodes an answer to the record.
    fn decode(&mut self, pending: Self::Pending, answer: &Self::Answer) -> Result<Vec<u8>, Error>;
}

/// The least seconds of the answers that count. Quick schemes are asked more often than slow ones.
const SPAN_MS: f64 = 500.0;
/// The most look-ups that count, unless the caller asks for more.
const MOST_RUNS: usize = 101;

/// Measures `runs` look-ups or more, after one that does not count. Every look-up is of another record.
///
/// # Errors
/// The error of the scheme, or an error if any answer is wrong.
pub fn measure<S: Scheme>(
    scheme: &mut S,
    costs: &Costs,
    records: &Records,
    runs: usize,
) -> Result<Row, Error> {
    let mut queries = Vec::new();
    let mut answers = Vec::new();
    let mut decodes = Vec::new();
    let mut scans = Vec::new();
    let mut packs = Vec::new();
    let mut row = Row::default();
    for lookup in 0.. {
        if lookup > runs && (lookup > MOST_RUNS || answers.iter().sum::<f64>() >= SPAN_MS) {
            break;
        }
        let index = records.target(lookup);
        let start = Instant::now();
        let (query, up_bytes, pending) = scheme.query(index)?;
        let query_ms = milliseconds(start);
        let start = Instant::now();
        let answered = scheme.answer(&query)?;
        let answer_ms = milliseconds(start);
        let start = Instant::now();
        let decoded = scheme.decode(pending, &answered.answer)?;
        let decode_ms = milliseconds(start);
        if decoded != records.record(index) {
            return Err(format!("the answer for record {index} is wrong").into());
        }
        row.up_bytes = up_bytes;
        row.down_bytes = answered.bytes;
        if lookup > 0 {
            queries.push(query_ms);
            answers.push(answer_ms);
            decodes.push(decode_ms);
            scans.extend(answered.scan_ms);
            packs.extend(answered.pack_ms);
        }
    }
    Ok(Row {
        records: records.count(),
        record_bytes: records.record_bytes(),
        threads: 1,
        setup_seconds: costs.setup_seconds,
        runs: answers.len(),
        query_ms: median(queries),
        answer_ms: median(answers),
        decode_ms: median(decodes),
        scan_ms: (!scans.is_empty()).then(|| median(scans)),
        pack_ms: (!packs.is_empty()).then(|| median(packs)),
        offline_bytes: costs.offline_bytes,
        key_bytes: costs.key_bytes,
        checked: true,
        ..row
    })
}

/// Returns the milliseconds since `start`.
fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Returns the median of `values`, which has at least one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scheme without privacy: a query is the index, and an answer is the record with `damage` added to its first byte.
    struct Plain<'a>(&'a Records, u8);

    impl Scheme for Plain<'_> {
        type Query = usize;
        type Pending = ();
        type Answer = Vec<u8>;

        fn query(&mut self, index: usize) -> Result<(usize, usize, ()), Error> {
            Ok((index, 8, ()))
        }

        fn answer(&mut self, query: &usize) -> Result<Answered<Vec<u8>>, Error> {
            let mut answer = self.0.record(*query).to_vec();
            answer[0] = answer[0].wrapping_add(self.1);
            Ok(Answered { bytes: answer.len(), answer, ..Answered::default() })
        }

        fn decode(&mut self, (): (), answer: &Vec<u8>) -> Result<Vec<u8>, Error> {
            Ok(answer.clone())
        }
    }

    #[test]
    fn wrong_answers_are_errors() {
        let records = Records::new(100, 24);
        let row = measure(&mut Plain(&records, 0), &Costs::default(), &records, 3).unwrap();
        assert_eq!((row.up_bytes, row.down_bytes, row.checked, row.runs), (8, 24, true, MOST_RUNS));
        let error = measure(&mut Plain(&records, 1), &Costs::default(), &records, 3).unwrap_err();
        assert!(error.to_string().ends_with("is wrong"));
    }
}

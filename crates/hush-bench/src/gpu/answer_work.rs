//! What whole answers have to do at least: one pass over all that a table has, and copies of queries and answers.

use hush_he::params::RingParams;
use hush_protocol::{column_table::ColumnTable, lwe_table::LweTable, pack_table::PackTable, table::Protocol};

use super::work::{WORD, Work, fold};

/// Operations on bytes of a word of a hint and two words of a selector: four classes of four by one bytes each, 2 a multiply-add.
const HINT_OPS: f64 = 2.0 * 2.0 * 16.0;

/// Answers to `batch` queries by column packing.
pub(super) fn column(table: &ColumnTable, batch: usize) -> Work {
    let (tiling, columns, ring) = (table.tiling(), table.columns_tiling(), table.params().ring());
    // The vector, the rotation key as words, the conjugation key, and two rows that fold.
    let polys = if table.folds() { 3 } else { 1 };
    let up = tiling.cols() + columns.cols() + polys * ring.kept_limbs() * ring.degree();
    let down = match table.protocol() {
        Protocol::ColpackS => WORD * table.rows() as f64,
        _ => switched(ring, 2 * table.answer_plaintexts()),
    };
    fold((tiling.bytes() + columns.bytes()) as f64, batch) + copies(batch, up, down)
}

/// Answers to `batch` queries by `simple`.
pub(super) fn simple(table: &LweTable, batch: usize) -> Work {
    let tiling = table.tiling();
    fold(tiling.bytes() as f64, batch) + copies(batch, tiling.cols(), WORD * table.rows() as f64)
}

/// Answers to `batch` queries by packing with evaluation keys.
pub(super) fn pack(table: &PackTable, batch: usize) -> Work {
    let (tiling, ring, plaintexts) = (table.tiling(), table.params().ring(), table.answer_plaintexts());
    // The vector, and a ciphertext to expand.
    let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
    let up = tiling.cols() + 2 * limbs * ring.degree();
    // Two ciphertexts of a pair have one mask.
    let pairs = if ring.packs_pairs() { plaintexts / 2 } else { 0 };
    let down = switched(ring, 2 * plaintexts - pairs);
    let hint = table.hint_tiling().bytes() as f64;
    let hint = Work { bytes: hint, byte_ops: HINT_OPS * batch as f64 * hint / WORD, ..Work::default() };
    hint + fold(tiling.bytes() as f64, batch) + copies(batch, up, down)
}

/// Copies for `batch` queries: `up` words for each to the device, and `down` bytes back.
fn copies(batch: usize, up: usize, down: f64) -> Work {
    let queries = batch as f64;
    Work { up: WORD * queries * up as f64, down: queries * down, ..Work::default() }
}

/// Bytes of `polys` polynomials at the widths of an answer, as the device has them: words of 32 bits, or of 64 where one is wider.
fn switched(ring: &RingParams, polys: usize) -> f64 {
    let bits = ring.response_bits();
    let word = if bits.a.max(bits.b) > u32::BITS { 2.0 * WORD } else { WORD };
    word * (polys * ring.degree()) as f64
}

#[cfg(test)]
mod tests {
    use hush_he::params::{
        COLPACK_N2048_Q52, DEFAULT_LWE, ONION_M31, ONIONPIRV2_N4096_4X27_SEC126, PACK_M31,
    };
    use hush_protocol::table::TableShape;

    use super::*;

    /// A table of 64 GiB.
    const SHAPE: TableShape = TableShape { columns: 1 << 16, blocks: 256, slot_bytes: 4096 };
    const ROWS: f64 = 256.0 * 4096.0;
    const COLUMNS: f64 = 65536.0;

    #[test]
    fn column_packing_brings_keys_up() {
        let table = |protocol| ColumnTable::new(protocol, COLPACK_N2048_Q52, SHAPE).unwrap();
        let polys = |count: f64| 4.0 * count * 2.0 * 2048.0;
        let folded = column(&table(Protocol::Colpack), 8);
        assert_eq!(folded.up, 8.0 * (4.0 * (COLUMNS + 4.0 * 2048.0) + polys(3.0)));
        // A slot of 4 KiB is two planes, of a ciphertext each.
        assert_eq!(folded.down, 8.0 * 4.0 * 2.0 * 2.0 * 2048.0);
        assert_eq!(folded.bytes, ROWS * (COLUMNS + 4.0 * 2048.0));
        assert_eq!(folded.byte_ops, 8.0 * 8.0 * folded.bytes);
        let all = column(&table(Protocol::ColpackS), 8);
        assert_eq!(all.up, 8.0 * (4.0 * (COLUMNS + 4.0 * 2048.0) + polys(1.0)));
        assert_eq!(all.down, 8.0 * 4.0 * ROWS);
    }

    #[test]
    fn simple_copies_vectors() {
        let work = simple(&LweTable::new(Protocol::Simple, DEFAULT_LWE, SHAPE).unwrap(), 3);
        assert_eq!((work.up, work.down), (3.0 * 4.0 * COLUMNS, 3.0 * 4.0 * ROWS));
        assert_eq!((work.bytes, work.byte_ops), (ROWS * COLUMNS, 24.0 * ROWS * COLUMNS));
    }

    #[test]
    fn packing_copies_ciphertexts() {
        let ring = PACK_M31.ring();
        let (n, limbs) = (ring.degree() as f64, ring.full_ring().limbs() as f64);
        let table = |protocol| PackTable::new(protocol, PACK_M31, SHAPE).unwrap();
        let all = pack(&table(Protocol::ExppackS), 2);
        assert_eq!(all.up, 2.0 * 4.0 * (COLUMNS + 2.0 * limbs * n));
        // Three polynomials for every two plaintexts.
        let plaintexts = table(Protocol::ExppackS).answer_plaintexts() as f64;
        assert_eq!(all.down, 2.0 * 4.0 * 1.5 * plaintexts * n);
        // A single plaintext has no pair.
        assert_eq!(table(Protocol::Hybrid).answer_plaintexts(), 1);
        assert_eq!(pack(&table(Protocol::Hybrid), 2).down, 2.0 * 4.0 * 2.0 * n);
    }

    #[test]
    fn wide_words_take_twice_the_bytes() {
        assert_eq!(switched(&ONION_M31, 3), 4.0 * 3.0 * ONION_M31.degree() as f64);
        let wide = ONIONPIRV2_N4096_4X27_SEC126;
        assert_eq!(switched(&wide, 3), 8.0 * 3.0 * wide.degree() as f64);
    }
}

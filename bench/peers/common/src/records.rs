//! Deterministic random records, and their form as words of a plaintext.

/// The seed of all records. Every run has the same ones.
const SEED: u64 = 0x4855_5348_5045_4552;

/// Records of equal length. Their bytes are pseudo-random and the same in every run.
pub struct Records {
    count: usize,
    record_bytes: usize,
    bytes: Vec<u8>,
}

impl Records {
    /// Creates `count` records of `record_bytes` bytes.
    pub fn new(count: usize, record_bytes: usize) -> Self {
        let mut bytes = vec![0; count * record_bytes];
        let mut state = SEED;
        for chunk in bytes.chunks_mut(8) {
            let word = next_word(&mut state).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Self { count, record_bytes, bytes }
    }

    /// Returns the number of records.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Returns the bytes of all records, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the record at `index`.
    pub fn record(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.record_bytes..][..self.record_bytes]
    }

    /// Returns the key of the record at `index`, for tables with keys.
    pub fn key(&self, index: usize) -> Vec<u8> {
        format!("key-{index}").into_bytes()
    }

    /// Returns the index of look-up number `lookup`. The indices are spread over all records.
    pub fn target(&self, lookup: usize) -> usize {
        ((lookup as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16) as usize % self.count
    }

    /// Returns the rows of a table of `rows` rows and `columns` words of `bits` bits. A row holds `row_bytes` bytes of
    /// records. The rest of each row, and rows behind the last record, are zero.
    pub fn words(
        &self,
        rows: usize,
        columns: usize,
        bits: usize,
        row_bytes: usize,
    ) -> impl Iterator<Item = u16> + '_ {
        (0..rows).flat_map(move |row| {
            let start = (row * row_bytes).min(self.bytes.len());
            let end = (start + row_bytes).min(self.bytes.len());
            words_of(&self.bytes[start..end], bits, columns)
        })
    }
}

/// Advances a SplitMix64 generator, and returns its next word.
fn next_word(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Splits bytes into `columns` words of `bits` bits, the low bits first. Missing bits are zero.
fn words_of(bytes: &[u8], bits: usize, columns: usize) -> Vec<u16> {
    let mask = (1u64 << bits) - 1;
    let mut words = Vec::with_capacity(columns);
    let mut held = 0u64;
    let mut held_bits = 0;
    for &byte in bytes {
        held |= u64::from(byte) << held_bits;
        held_bits += 8;
        if held_bits >= bits {
            words.push((held & mask) as u16);
            held >>= bits;
            held_bits -= bits;
        }
    }
    if held_bits > 0 && words.len() < columns {
        words.push(held as u16);
    }
    words.resize(columns, 0);
    words
}

/// Joins words of `bits` bits to bytes: the inverse of the words of a row.
pub(crate) fn bytes_of(words: &[u64], bits: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.len() * bits / 8);
    let mut held = 0u64;
    let mut held_bits = 0;
    for &word in words {
        held |= word << held_bits;
        held_bits += bits;
        while held_bits >= 8 {
            bytes.push(held as u8);
            held >>= 8;
            held_bits -= 8;
        }
    }
    bytes
}

impl Records {
    /// Returns the record at `index` out of the words of its row, which holds `row_bytes` bytes of records.
    pub fn record_of_words(&self, index: usize, words: &[u64], bits: usize, row_bytes: usize) -> Vec<u8> {
        let bytes = bytes_of(words, bits);
        let offset = index * self.record_bytes % row_bytes;
        bytes.get(offset..offset + self.record_bytes).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_every_record() {
        let records = Records::new(40, 64);
        for bits in [8, 14, 16] {
            let row_bytes = 128;
            let columns = (row_bytes * 8usize).div_ceil(bits) + 3;
            let words: Vec<_> = records.words(32, columns, bits, row_bytes).map(u64::from).collect();
            assert_eq!(words.len(), 32 * columns);
            for index in 0..records.count() {
                let row = index * 64 / row_bytes;
                let row = &words[row * columns..][..columns];
                assert_eq!(records.record_of_words(index, row, bits, row_bytes), records.record(index));
            }
        }
    }

    #[test]
    fn records_differ() {
        let records = Records::new(3, 12);
        assert_ne!(records.record(0), records.record(1));
        assert_eq!(records.bytes(), Records::new(3, 12).bytes());
    }
}

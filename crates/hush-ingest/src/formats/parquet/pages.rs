//! The pages of a Parquet file, checked before their reader allocates the lengths that they state.
//!
//! The reader trusts the length that a page states, and the number of its values. A file of some hundred bytes could make the
//! reader allocate more memory than the machine has, which would end the process.

use std::{
    fs::File,
    io::BufReader,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parquet::{
    basic::{Compression, Encoding, Type as Physical},
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
    file::{
        metadata::{
            ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
        },
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
};

use crate::formats::parquet::{
    shapes::PAGE_HEADER,
    thrift::{Malformed, Number, check_metadata, numbers},
};

/// The number of bytes behind the metadata: its length and the magic bytes.
const TAIL_BYTES: usize = 8;
/// The greatest length in bytes of a page header, which may contain the least and the greatest value of the page.
const MAX_PAGE_HEADER: u64 = 16 << 20;
/// The length of an INT96 value in bytes.
const INT96_BYTES: usize = 12;
/// The most byte arrays in a page whose lengths are encoded as differences. Writers make pages of about a mebibyte.
const MAX_DIFFERENCES: usize = 1 << 24;

/// Reads the metadata at the end of a file of `length` bytes.
pub(crate) fn read_metadata(file: &File, length: u64) -> Result<ParquetMetaData> {
    let too_short = || ParquetError::EOF("the file is too short".into());
    let tail_start = length.checked_sub(TAIL_BYTES as u64).ok_or_else(too_short)?;
    let mut tail = [0; TAIL_BYTES];
    file.read_exact_at(&mut tail, tail_start)?;
    let tail = FooterTail::try_new(&tail)?;
    if tail.is_encrypted_footer() {
        return Err(ParquetError::General("the file is encrypted".into()));
    }
    let start = tail_start.checked_sub(tail.metadata_length() as u64).ok_or_else(too_short)?;
    let mut metadata = vec![0; tail.metadata_length()];
    file.read_exact_at(&mut metadata, start)?;
    check_metadata(&metadata).map_err(refused)?;
    // The reader skips every part of the metadata that it would take for another schema.
    let schema = ParquetMetaDataReader::decode_schema(&metadata)?;
    let options = ParquetMetaDataOptions::new().with_schema(schema);
    ParquetMetaDataReader::decode_metadata_with_options(&metadata, Some(&options))
}

fn refused(reason: Malformed) -> ParquetError {
    match reason {
        Malformed::Ends => ParquetError::EOF("its metadata ends early".into()),
        Malformed::Odd(reason) => ParquetError::General(reason.into()),
    }
}

/// The number of entries that the pages of a column may still have, where a row may have many. The levels of a page take almost no
/// bytes, and the reader continues until it has whole rows. The pages and their reader share the number.
#[derive(Clone, Default)]
pub(crate) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    /// Sets how many entries may still be read.
    pub(crate) fn set(&self, entries: usize) {
        self.0.store(entries, Ordering::Relaxed);
    }

    fn take(&self, entries: usize) -> Result<()> {
        let rest = self.0.load(Ordering::Relaxed).checked_sub(entries);
        self.set(rest.ok_or_else(|| {
            ParquetError::General("a few rows have too many elements in their lists".into())
        })?);
        Ok(())
    }
}

/// The pages of a column of a row group.
pub(crate) struct Pages {
    reader: SerializedPageReader<ChunkFile>,
    physical: Physical,
    /// The highest definition level.
    max_level: i16,
    /// The highest repetition level.
    max_repetition: i16,
    /// The allowance of entries, for a column whose rows may have many.
    allowance: Option<Allowance>,
    /// The next page, if it was read ahead; `Some(None)` at the end.
    next: Option<Option<Page>>,
}

impl Pages {
    /// Opens the pages of `column`, in a row group of `rows` rows of a file of `length` bytes.
    pub(crate) fn new(
        file: &Arc<File>,
        length: u64,
        column: &ColumnChunkMetaData,
        rows: usize,
        allowance: Allowance,
    ) -> Result<Self> {
        let chunk = ChunkFile { file: file.clone(), length, compression: column.compression() };
        let reader = SerializedPageReader::new(Arc::new(chunk), column, rows, None)?;
        let descriptor = column.column_descr();
        let max_repetition = descriptor.max_rep_level();
        Ok(Self {
            reader,
            physical: descriptor.physical_type(),
            max_level: descriptor.max_def_level(),
            max_repetition,
            allowance: (max_repetition > 0).then_some(allowance),
            next: None,
        })
    }

    /// Refuses a page with more differences than values, or more entries than are allowed.
    fn check(&self, page: &Page) -> Result<()> {
        let Some((start, count, encoding)) = self.values(page) else { return Ok(()) };
        if let Some(allowance) = &self.allowance {
            allowance.take(count as usize)?;
        }
        let most = MAX_DIFFERENCES.min(count as usize);
        let runs = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => 0,
        };
        let mut rest = page.buffer().get(start..).unwrap_or_default();
        for run in 1..=runs {
            // The reader has its own error for a head that ends early.
            let Some(Differences { count, length }) = differences(rest) else { return Ok(()) };
            if count > most {
                let text = format!("a page has {count} lengths of values, at most {most} are possible");
                return Err(ParquetError::General(text));
            }
            if run < runs {
                let behind = length.and_then(|length| rest.get(length..));
                rest = behind.ok_or_else(|| ParquetError::EOF("the lengths of values end early".into()))?;
            }
        }
        Ok(())
    }

    /// Returns where the values of a data page begin, how many entries it has, and the encoding of the values.
    fn values(&self, page: &Page) -> Option<(usize, u32, Encoding)> {
        match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let levels =
                    [(self.max_repetition, *rep_level_encoding), (self.max_level, *def_level_encoding)];
                let start = levels
                    .into_iter()
                    .fold(0, |at, (max, own)| at + level_bytes(buf, at, *num_values, max, own));
                Some((start, *num_values, *encoding))
            }
            Page::DataPageV2 { num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let start = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                Some((start, *num_values, *encoding))
            }
            Page::DictionaryPage { .. } => None,
        }
    }
}

/// Cuts off the bytes behind the last INT96 value of a page whose values begin at `start`. Fastparquet leaves eight bytes there.
/// The reader treats INT96 as any type of fixed length, and refuses bytes behind its last value.
fn trim(page: &mut Page, start: usize) {
    let (Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } | Page::DictionaryPage { buf, .. }) = page;
    buf.truncate(buf.len() - buf.len().saturating_sub(start) % INT96_BYTES);
}

/// Returns the bytes of levels of a page of the first version that begin at `at`.
fn level_bytes(page: &[u8], at: usize, entries: u32, max_level: i16, encoding: Encoding) -> usize {
    #[expect(deprecated, reason = "old files have it")]
    match (max_level, encoding) {
        (0, _) => 0,
        (max, Encoding::BIT_PACKED) => {
            let bits = i16::BITS - max.leading_zeros();
            (entries as usize * bits as usize).div_ceil(8)
        }
        _ => {
            let length = page.get(at..).and_then(<[u8]>::first_chunk);
            length.map_or(0, |length| 4 + u32::from_le_bytes(*length) as usize)
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        if let Some(page) = self.next.take() {
            return Ok(page);
        }
        let mut page = self.reader.get_next_page()?;
        if let Some(page) = &mut page {
            self.check(page)?;
            let start = match self.values(page) {
                Some((start, _, Encoding::PLAIN)) => Some(start),
                Some(_) => None,
                None => Some(0),
            };
            if let Some(start) = start.filter(|_| self.physical == Physical::INT96) {
                trim(page, start);
            }
        }
        Ok(page)
    }

    /// Returns whether a row ends with the last page read: always before a page of the second version.
    fn at_record_boundary(&mut self) -> Result<bool> {
        let next = self.get_next_page()?;
        let is_boundary = next.as_ref().is_none_or(|page| matches!(page, Page::DataPageV2 { .. }));
        self.next = Some(next);
        Ok(is_boundary)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Err(never())
    }

    fn skip_next_page(&mut self) -> Result<()> {
        Err(never())
    }
}

/// Returns the error of the methods that skip or peek. A header read before its page is requested would be checked twice, once at a
/// wrong offset.
fn never() -> ParquetError {
    ParquetError::NYI("pages are read one after the other".into())
}

/// The differences (DELTA_BINARY_PACKED) at the start of the values of a page.
#[derive(Debug, PartialEq, Eq)]
struct Differences {
    count: usize,
    /// The number of bytes of the differences; `None` if they end early or their blocks are empty.
    length: Option<usize>,
}

/// Parses the differences at the start of `bytes`. Returns `None` if their head ends early.
fn differences(bytes: &[u8]) -> Option<Differences> {
    let mut at = 0;
    let mut number = || {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *bytes.get(at)?;
            at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        usize::try_from(number).ok()
    };
    let block = number()?;
    let parts = number()?;
    let count = number()?;
    let _first = number()?;
    let mut left = count.saturating_sub(1);
    let mut length = || {
        let part = block.checked_div(parts).filter(|&part| part > 0)?;
        while left > 0 {
            // A block has the least difference, then the widths of its parts, then the parts. The last part is padded.
            while bytes.get(at)? & 0x80 != 0 {
                at += 1;
            }
            let widths = bytes.get(at + 1..)?.get(..parts)?;
            at += 1 + parts;
            for &width in widths {
                if left == 0 {
                    break;
                }
                at = at.checked_add(part.checked_mul(usize::from(width))? / 8)?;
                left = left.saturating_sub(part);
            }
        }
        Some(at)
    };
    Some(Differences { count, length: length() })
}

/// The file of a column, whose page headers are checked as they are read.
struct ChunkFile {
    file: Arc<File>,
    length: u64,
    compression: Compression,
}

impl Length for ChunkFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for ChunkFile {
    type T = BufReader<File>;

    /// Returns the bytes behind the header of the page that starts at `start`.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.check_header(start)?;
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if self.length.saturating_sub(start) < length as u64 {
            return Err(ParquetError::EOF(format!(
                "a page of {length} bytes goes beyond the end of the file"
            )));
        }
        self.file.get_bytes(start, length)
    }
}

impl ChunkFile {
    /// Refuses a page that claims to become longer than it can, or to have more values than bytes.
    fn check_header(&self, start: u64) -> Result<()> {
        // Numbers of fields in parquet.thrift.
        const UNCOMPRESSED: [i16; 2] = [0, 2];
        const COMPRESSED: [i16; 2] = [0, 3];
        const DICTIONARY_VALUES: [i16; 2] = [7, 1];
        let numbers = self.header(start)?;
        // The reader, too, takes the last of several values of a field.
        let last = |at: [i16; 2]| {
            let mut found = numbers.iter().rev().filter(|number| [number.outer, number.field] == at);
            found.next().map_or(0, |number| u64::try_from(number.low_bits()).unwrap_or(0))
        };
        let uncompressed = last(UNCOMPRESSED);
        let compressed = last(COMPRESSED);
        if uncompressed > most_expanded(self.compression, compressed) {
            let text = format!("a page of {compressed} bytes cannot become one of {uncompressed}");
            return Err(ParquetError::General(text));
        }
        let is_plain = self.compression == Compression::UNCOMPRESSED;
        let values = last(DICTIONARY_VALUES);
        let bytes = if is_plain { compressed } else { uncompressed };
        if values > bytes {
            let text = format!("a dictionary of {bytes} bytes cannot have {values} values");
            return Err(ParquetError::General(text));
        }
        Ok(())
    }

    /// Returns the numbers in the header of the page that starts at `start`.
    fn header(&self, start: u64) -> Result<Vec<Number>> {
        let most = self.length.saturating_sub(start).min(MAX_PAGE_HEADER);
        let mut length = most.min(1 << 12);
        loop {
            let mut bytes = vec![0; length as usize];
            self.file.read_exact_at(&mut bytes, start)?;
            match numbers(&bytes, PAGE_HEADER) {
                Err(Malformed::Ends) if length < most => length = most.min(length << 4),
                outcome => return outcome.map_err(refused),
            }
        }
    }
}

/// Returns the most bytes that `compressed` bytes may decompress to. Without compression there is no bound, since the compressed
/// length counts.
fn most_expanded(compression: Compression, compressed: u64) -> u64 {
    /// The size in bytes below which a page needs no check.
    const SMALL: u64 = 1 << 16;
    let (least, factor) = match compression {
        Compression::UNCOMPRESSED | Compression::LZO => return u64::MAX,
        // In DEFLATE a copy of up to 258 bytes takes two bits; the others compress far less.
        Compression::SNAPPY | Compression::GZIP(_) | Compression::LZ4 | Compression::LZ4_RAW => (SMALL, 2048),
        // A block of 128 KiB takes four bytes.
        Compression::ZSTD(_) => (SMALL, 1 << 15),
        // In Brotli 16 MiB can take about ten bytes, but only a constant page compresses like that.
        Compression::BROTLI(_) => (64 << 20, 1 << 15),
    };
    compressed.saturating_mul(factor).saturating_add(least)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Encodes a number as the field after the last one.
    fn number(value: u32) -> Vec<u8> {
        let zigzag = u64::from(value) << 1;
        let digits = (0..5).map(|at| (zigzag >> (7 * at)) as u8 & 0x7f | if at < 4 { 0x80 } else { 0 });
        [0x15].into_iter().chain(digits).collect()
    }

    /// Encodes the header of a dictionary page with these numbers of bytes and values.
    fn header(uncompressed: u32, compressed: u32, values: u32) -> Vec<u8> {
        let bytes = [number(2), number(uncompressed), number(compressed)].concat();
        [bytes, vec![0x4c], number(values), vec![0, 0]].concat()
    }

    fn file(content: &[u8], compression: Compression) -> ChunkFile {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        ChunkFile { file: file.into(), length: content.len() as u64, compression }
    }

    #[test]
    fn pages_that_say_more_than_they_can_have_are_refused() {
        let snappy = Compression::SNAPPY;
        let zstd = Compression::ZSTD(Default::default());
        let plain = Compression::UNCOMPRESSED;
        let brotli = Compression::BROTLI(Default::default());
        let huge = i32::MAX as u32;
        for (compression, uncompressed, compressed, values, is_fine) in [
            (snappy, 1 << 20, 1 << 16, 1000, true),
            (snappy, 1 << 16, 0, 1000, true),
            (snappy, huge, 100, 1000, false),
            (zstd, 1 << 20, 32, 1000, true),
            (zstd, huge, 100, 1000, false),
            (brotli, 64 << 20, 10, 1000, true),
            (brotli, huge, 100, 1000, false),
            (snappy, 1000, 900, 1001, false),
            (brotli, 1000, 900, huge, false),
            (plain, huge, 1000, 1000, true),
            (plain, huge, 1000, 1001, false),
        ] {
            let content = header(uncompressed, compressed, values);
            let read = file(&content, compression).get_read(0);
            assert_eq!(read.is_ok(), is_fine, "{compression:?}, {uncompressed}, {compressed}, {values}");
        }
        // -2^33 + 2^30, of which the reader takes the low 32 bits: 2^30.
        let wide = [&[0x15, 4, 0x15, 0xff, 0xff, 0xff, 0xff, 0x37, 0x15, 2][..], &[0]].concat();
        assert!(file(&wide, snappy).get_read(0).is_err());
    }

    #[test]
    fn what_is_behind_values_of_int96_is_cut_off() {
        for (bytes, kept) in [(5 + 24 + 8, 5 + 24), (5 + 24, 5 + 24), (5, 5), (3, 3)] {
            let buf = vec![1; bytes].into();
            let mut page =
                Page::DictionaryPage { buf, num_values: 2, encoding: Encoding::PLAIN, is_sorted: false };
            trim(&mut page, 5);
            assert_eq!(page.buffer().len(), kept);
        }
    }

    #[test]
    #[expect(deprecated, reason = "old files have it")]
    fn levels_begin_where_others_end() {
        // Two bytes of repetition levels, then three of definition levels.
        let page = [2, 0, 0, 0, 9, 9, 3, 0, 0, 0, 9, 9, 9, 7];
        assert_eq!(level_bytes(&page, 0, 5, 1, Encoding::RLE), 6);
        assert_eq!(level_bytes(&page, 6, 5, 2, Encoding::RLE), 7);
        assert_eq!(level_bytes(&page, 6, 5, 0, Encoding::RLE), 0);
        assert_eq!(level_bytes(&page, 6, 5, 3, Encoding::BIT_PACKED), 2);
        assert_eq!(level_bytes(&page, 13, 5, 3, Encoding::RLE), 0);
    }

    #[test]
    fn headers_are_read_as_far_as_they_go_and_no_further() {
        let long = [vec![0xf8, 0x80, 0x80, 4], vec![0; 1 << 16], vec![0]].concat();
        assert!(file(&long, Compression::UNCOMPRESSED).get_read(0).is_ok());
        for cut in [0, 3, 4096, long.len() - 1] {
            assert!(file(&long[..cut], Compression::UNCOMPRESSED).get_read(0).is_err());
        }
        let chunk = file(b"0123456789", Compression::UNCOMPRESSED);
        assert_eq!(chunk.get_bytes(2, 8).unwrap().as_ref(), b"23456789");
        for (start, length) in [(2, 9), (11, 0), (u64::MAX, 1), (0, usize::MAX)] {
            assert_eq!(chunk.get_bytes(start, length).is_err(), length > 0);
        }
    }

    #[test]
    fn differences_are_counted_and_measured() {
        let found = |bytes: &[u8]| differences(bytes).map(|found| (found.count, found.length));
        // Blocks of 128 values in 4 parts of 32.
        let head = |count: &[u8]| [&[0x80, 1, 4], count, &[6]].concat();
        let few = [head(&[33]), vec![0, 3, 9, 9, 9], vec![0; 12], vec![7]].concat();
        assert_eq!(found(&few), Some((33, Some(few.len() - 1))));
        assert_eq!(found(&head(&[1])), Some((1, Some(5))));
        let many = [head(&[0xff, 0xff, 0xff, 0xff, 15]), vec![0; 100]].concat();
        assert_eq!(found(&many), Some((u32::MAX as usize, None)));
        // Blocks of nothing, or of no parts.
        for head in [[0, 4, 5, 0], [0, 0, 5, 0], [127, 0, 5, 0], [1, 2, 5, 0]] {
            assert_eq!(found(&[&head[..], &[0; 100]].concat()), Some((5, None)));
            assert_eq!(found(&head[..3]), None);
        }
        assert_eq!(found(&[0xff; 60]), Some((usize::MAX, None)));
    }
}

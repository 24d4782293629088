//! Values that a build compresses, and a client reads: whatever they are, and whatever a server makes of them.

use hush_build::builder::Compress;
use hush_client::{ClientError, Decompressor};
use hush_engine::Silent;
use hush_ingest::{Compressor, OnDuplicate, Record, Spool, SpooledRecords, compress_slots};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol,
    descriptor::{BlobRef, Codec, Compression},
};

use crate::tables::{Folder, Wanted, on_cpu};

/// Text with much in common.
fn text(index: usize) -> Vec<u8> {
    let words = ["private ", "look-up ", "of a ", "record ", "in a ", "table "];
    let mut text: String =
        (0..index % 40).map(|at: usize| words[(index * 7 + at * at + index / 3) % words.len()]).collect();
    text += &format!("number {index}");
    text.into_bytes()
}

fn spooled(values: &[Vec<u8>]) -> SpooledRecords {
    let mut spool = Spool::create(tempfile::tempdir().unwrap().path()).unwrap();
    for value in values {
        spool.push(&Record { key: None, value: value.clone() }).unwrap();
    }
    spool.finish(OnDuplicate::Error).unwrap()
}

fn compression(longest: usize) -> Compression {
    let dictionary = BlobRef { blake3: [0; 32], bytes: 1 };
    Compression { codec: Codec::Zstd, dictionary, max_value_bytes: longest as u32 }
}

#[test]
fn values_come_back_whatever_they_are() {
    let rng = &mut Csprng::insecure_from_seed(1);
    let mut values: Vec<_> = (0..5000).map(text).collect();
    let mut random = vec![0; 3000];
    rng.fill_bytes(&mut random);
    values.extend([Vec::new(), vec![7], random, vec![b'x'; 300_000]]);
    values.push((0..16 << 20).map(|at: usize| (at % 251 * (at >> 16)) as u8).collect());
    let records = spooled(&values);
    let compressor = Compressor::trained(&records).unwrap();
    let again = Compressor::trained(&records).unwrap();
    assert!(compressor.dictionary() == again.dictionary(), "the same of the same records");
    let decompressor = Decompressor::new(&compression(16 << 20), compressor.dictionary()).unwrap();
    let mut context = compressor.context();
    let (mut before, mut after) = (0, 0);
    for (index, value) in values.iter().enumerate() {
        let compressed = Compressor::compress(&mut context, value).unwrap();
        assert!(compressed.len() <= value.len() + value.len() / 256 + 16);
        if index < 5000 {
            (before, after) = (before + value.len(), after + compressed.len());
        }
        assert!(*decompressor.value(&compressed).unwrap() == *value, "value {index}");
        if index % 1000 == 999 {
            let even = decompressor.value_in_even_time(Some(&compressed)).unwrap().unwrap();
            assert!(*even == *value, "value {index}");
        }
    }
    assert!(decompressor.value_in_even_time(None).unwrap().is_none());
    assert!(3 * after < before, "{after} of {before}: without a dictionary they would not become so short");
}

#[test]
fn what_is_no_value_is_an_error() {
    let values: Vec<_> = (0..3000).map(text).collect();
    let compressor = Compressor::trained(&spooled(&values)).unwrap();
    let longest = values.iter().map(Vec::len).max().unwrap();
    let decompressor = Decompressor::new(&compression(longest), compressor.dictionary()).unwrap();
    let refused = |bytes: &[u8]| {
        let even = decompressor.value_in_even_time(Some(bytes));
        for outcome in [decompressor.value(bytes).map(drop), even.map(drop)] {
            assert!(matches!(outcome, Err(ClientError::Compression)), "{bytes:?}")
        }
    };
    let mut context = compressor.context();
    let value = Compressor::compress(&mut context, &values[39]).unwrap();
    for end in 0..value.len() {
        refused(&value[..end]);
    }
    refused(&[&value[..], &[0]].concat());
    // The value is longer than the longest that is declared.
    refused(&Compressor::compress(&mut context, &vec![1; longest + 1]).unwrap());
    // Two blocks of 128 KiB of one byte, where four bytes are stated; a frame that does not state its length.
    let block = [0b0000_0010, 0, 16, 9];
    refused(&[&[0x20, 4][..], &block, &[0b11, 0, 16, 9]].concat());
    refused(&[0x00, 0x50, 1, 0, 0]);
    // Whatever is flipped, nothing panics, and nothing is longer than stated.
    for at in 0..value.len() * 8 {
        let mut flipped = value.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        if let Ok(read) = decompressor.value(&flipped) {
            assert!(read.len() <= longest);
        }
    }
    // The dictionary is stored as a frame, which is refused if it is cut, has more behind it, or states too long a content.
    let stored = compressor.stored().unwrap();
    assert!(stored.len() < compressor.dictionary().len());
    let again = Decompressor::new(&compression(longest), &stored).unwrap();
    assert_eq!(*again.value(&value).unwrap(), values[39]);
    assert!(Compressor::with_stored(&stored).unwrap().dictionary() == compressor.dictionary());
    assert!(Compressor::with_stored(&stored[..9]).is_err());
    let too_long = compress_slots(&vec![0; (1 << 20) + 1]).unwrap();
    let more = [&stored[..], &[0]].concat();
    let cut = &stored[..stored.len() - 1];
    let refused = [&b""[..], b"no dictionary", &compressor.dictionary()[..100], cut, &more, &too_long];
    for dictionary in refused {
        assert!(matches!(Decompressor::new(&compression(9), dictionary), Err(ClientError::Compression)));
    }
}

#[test]
fn compressed_tables_are_served_by_key_and_by_index() {
    let cpu = on_cpu(2);
    for (protocol, by_key, tiers) in [
        (Protocol::Colpack, true, &[60, 200, 700][..]),
        (Protocol::Simple, false, &[]),
        (Protocol::Hybrid, true, &[]),
    ] {
        let wanted =
            Wanted { by_key, tiers, compress: Compress::Zstd, ..Wanted::by_index(protocol, 3000, 0, 700) };
        let mut folder = Folder::new(wanted);
        folder.records = (0..3000).map(text).collect();
        folder.build("table", &cpu, &Silent).unwrap();
        let descriptor = folder.descriptor();
        let longest = folder.records.iter().map(Vec::len).max().unwrap();
        assert_eq!(descriptor.compression.unwrap().max_value_bytes as usize, longest);
        assert!((descriptor.slot.stored_bytes()) < longest / 2);
        let engine = folder.open(&cpu).unwrap();
        let asked = folder.asked(&*engine, vec![0, 1, 39, 77, 1234, 2999]);
        asked.check(&asked.answers(&*engine).unwrap());
    }
}

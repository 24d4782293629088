//! Targets for the content of messages: words, keys, answers.

use std::{collections::HashMap, sync::LazyLock};

use hush_client::Decompressor;
use hush_he::{
    HeError,
    algorithms::{open_column_keys, open_ring_query, open_tlwe_query},
    codec::{pack_rounded, pack_wide, packed_bytes, unpack_scaled, unpack_wide},
    params::{
        INSECURE_COLPACK_N256, INSECURE_PRIVKS_N256, INSECURE_RING_N256, INSECURE_TFHE_N256, RingContext,
        VIPIR_N4096_3X29,
    },
};
use hush_protocol::{
    ProtocolError,
    descriptor::{BlobRef, Codec, Compression},
    keyword::MAX_KEY_BYTES,
    normal_form::NormalForm,
    ring_keys::{RingKeys, open_upload},
    schema::{Column, ColumnType, Schema},
    sorted::{FenceFile, RangeForm, Sorted, fences::Fences, found::RowMatch, order::SortOrder},
    symbols::{from_symbols, symbol_count, to_symbols},
};
use serde_json::value::RawValue;

use crate::{
    allocation::{FIXED, bounded},
    input::{Input, fitted},
    on_one_thread,
    sample::{Asked, descriptors},
};

/// A dictionary, and a value that was compressed with it.
pub fn compressed(bytes: &[u8]) {
    const LONGEST: u32 = 4096;
    let mut input = Input::new(bytes);
    let (dictionary, value) = (input.piece().to_vec(), input.rest());
    let blob = BlobRef { blake3: [0; 32], bytes: dictionary.len() as u64 };
    let compression = Compression { codec: Codec::Zstd, dictionary: blob, max_value_bytes: LONGEST };
    // The tables of a dictionary, and those of a frame with a block of 128 KiB.
    let decompressor =
        bounded(2 * FIXED + 16 * dictionary.len(), || Decompressor::new(&compression, &dictionary));
    let Ok(decompressor) = decompressor else { return };
    let read = bounded(4 * FIXED + 16 * bytes.len(), || decompressor.value_in_even_time(Some(value)));
    if let Ok(value) = read {
        assert!(value.is_some_and(|value| value.len() <= LONGEST as usize));
    }
}

/// A value of some fields.
pub fn fields(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let columns = 0..2 + input.byte() % 4;
    let value = columns.map(|index| Column(index.to_string(), ColumnType::ANY)).collect();
    let schema = Schema { key: Vec::new(), value, normalize: NormalForm::default() };
    let (count, value) = (schema.value.len(), input.rest());
    // A control character is six in JSON.
    let Ok(json) = bounded(FIXED + 16 * value.len(), || schema.readable(value)) else { return };
    let object: HashMap<String, &RawValue> = serde_json::from_slice(&json).expect("a JSON object");
    assert_eq!(object.len(), count);
}

/// Fences of a sorted table, and a leaf in which rows are found.
pub fn sorted(bytes: &[u8]) {
    const LEAVES: u64 = 64;
    let mut input = Input::new(bytes);
    let order =
        [SortOrder::Bytes, SortOrder::Number, SortOrder::Ip, SortOrder::Hex][usize::from(input.byte()) % 4];
    let range = [None, Some(RangeForm::Network), Some(RangeForm::To("to".into()))]
        [usize::from(input.byte()) % 3]
        .clone();
    let by = [RowMatch::Exact, RowMatch::AtOrBelow, RowMatch::AtOrAbove, RowMatch::Prefix, RowMatch::InRange];
    let by = by[usize::from(input.byte()) % by.len()];
    let column = |name: &str| Column(name.into(), ColumnType::ANY);
    let value = (0..input.byte() % 3).map(|index| column(&index.to_string())).collect();
    let schema = Schema { key: vec![column("key")], value, normalize: NormalForm::default() };
    let file = FenceFile { blob: BlobRef { blake3: [0; 32], bytes: 0 }, length: 0 };
    let table = Sorted { order, range, rows: 0, overlap: 0, fences: file, added: None };
    let (built, added, key, leaf) = (input.piece(), input.piece(), input.piece(), input.rest());
    // A fence is as long as a key at most.
    let most = LEAVES as usize * (MAX_KEY_BYTES + 16);
    let fences = bounded(FIXED + 8 * most, || Fences::parse(built, added, LEAVES));
    let Ok(sought) = table.sought(&schema, by, key) else { return };
    if let Some(fences) = fences {
        let at = fences.leaf_of(sought.key());
        assert!(fences.position(at) < LEAVES && fences.fence(0).is_empty());
        assert!(at == 0 || fences.fence(at) <= sought.key());
        assert!(at + 1 == fences.len() || fences.fence(at + 1) > sought.key());
    }
    // A row takes three bytes at least, and may show a key six times as long as any, or base64.
    let most = FIXED + 8 * (leaf.len() / 3 + 1) * MAX_KEY_BYTES + 16 * leaf.len();
    let found = bounded(2 * most, || table.find(&schema, leaf, &sought, false));
    if let (Ok(Some(rows)), true) = (found, sought.is_shown()) {
        serde_json::from_slice::<HashMap<String, &RawValue>>(&rows).expect("a JSON object");
    }
}

/// Words of any width, packed.
pub fn packed_words(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let bits = 1 + u32::from(input.byte()) % 120;
    let packed = input.rest();
    let count = packed.len() * 8 / bits as usize;
    let length = packed_bytes(count, bits);
    // Bits behind the last word are zero.
    let mut expected = packed[..length].to_vec();
    let used = (count * bits as usize) % 8;
    if let (Some(last), 1..) = (expected.last_mut(), used) {
        *last &= (1 << used) - 1;
    }

    if expected != packed[..length] {
        assert!(matches!(unpack_wide(&packed[..length], count, bits), Err(HeError::PackedPadding)));
        assert!(
            bits > u32::BITS || unpack_scaled(&packed[..length], count, bits) == Err(HeError::PackedPadding)
        );
    }
    let words: Vec<u128> = unpack_wide(&expected, count, bits).expect("the right length").collect();
    assert!(words.iter().all(|word| word >> bits == 0));
    let mut again = Vec::new();
    pack_wide(words, bits, &mut again);
    assert_eq!(again, expected);
    assert!(unpack_wide(packed, count + 1, bits).is_err());

    if bits <= u32::BITS {
        let words = unpack_scaled(&expected, count, bits).expect("the right length");
        assert_eq!(pack_rounded(&words, bits), expected);
        assert!(unpack_scaled(packed, count + 1, bits).is_err());
        let mut symbols = vec![0; symbol_count(packed.len(), bits)];
        to_symbols(packed, bits, &mut symbols);
        let mut joined = vec![0xaa; packed.len()];
        from_symbols(&symbols, bits, &mut joined);
        assert_eq!(joined, packed);
    }
}

/// Queries and keys over rings, of the length that a server expects or of any other.
pub fn queries(bytes: &[u8]) {
    const ROWS: usize = 14;
    const FOLDS: usize = 3;
    static RING: LazyLock<RingContext> = LazyLock::new(|| RingContext::new(INSECURE_RING_N256));
    static WHOLE: LazyLock<RingContext> = LazyLock::new(|| RingContext::new(*VIPIR_N4096_3X29.ring()));
    static COLUMN: LazyLock<RingContext> = LazyLock::new(|| RingContext::new(*INSECURE_COLPACK_N256.ring()));
    static TLWE: LazyLock<RingContext> = LazyLock::new(|| RingContext::new(*INSECURE_PRIVKS_N256.ring()));
    static SWITCHED: LazyLock<RingContext> = LazyLock::new(|| RingContext::new(*INSECURE_TFHE_N256.ring()));
    static UPLOADS: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        [INSECURE_RING_N256, *INSECURE_TFHE_N256.ring()]
            .map(|set| RingKeys::from_seed(&set, &[1; 32]).upload().to_vec())
    });

    let mut input = Input::new(bytes);
    let kind = input.byte();
    // The third bit: as in `tfhe` and `tfhe-privks`.
    let (is_fitted, folds, is_tfhe) = (kind & 0x80 == 0, kind & 0x40 == 0, kind & 0x20 != 0);
    let length = match kind % 4 {
        0 if is_tfhe => INSECURE_PRIVKS_N256.ring().query_bytes(ROWS, FOLDS),
        0 => INSECURE_RING_N256.query_bytes(ROWS, FOLDS),
        1 => INSECURE_COLPACK_N256.key_bytes(folds),
        2 => UPLOADS[usize::from(is_tfhe)].len(),
        _ => VIPIR_N4096_3X29.ring().query_bytes(ROWS, FOLDS),
    };
    let body = match (is_fitted, kind % 4) {
        (true, 2) => {
            // An upload with something else in it.
            let (at, spoilt) = (usize::from(input.word()) % length, input.rest());
            let mut body = UPLOADS[usize::from(is_tfhe)].clone();
            let end = length.min(at + spoilt.len());
            body[at..end].copy_from_slice(&spoilt[..end - at]);
            body
        }
        (true, _) => fitted(input.rest(), length),
        (false, _) => input.rest().to_vec(),
    };
    let refused: Option<HeError> = bounded(FIXED + 64 * length, || match kind % 4 {
        0 if is_tfhe => open_tlwe_query(&TLWE, ROWS, FOLDS, &body).err(),
        0 => open_ring_query(&RING, ROWS, FOLDS, &body).err(),
        1 => open_column_keys(&INSECURE_COLPACK_N256, &COLUMN, folds, &body).err(),
        2 => match open_upload(if is_tfhe { &SWITCHED } else { &RING }, &body).err()? {
            ProtocolError::He(error) => Some(error),
            error => {
                assert!(matches!(error, ProtocolError::Keys(_) | ProtocolError::Length { .. }), "{error}");
                None
            }
        },
        _ => open_ring_query(&WHOLE, ROWS, FOLDS, &body).err(),
    });
    if let Some(error) = refused {
        let is_wrong_length = matches!(error, HeError::PackedLength { .. });
        assert!(is_wrong_length == (body.len() != length) || kind % 4 == 2, "{error}");
    }
}

/// Answers of every protocol, of the length that the client expects or of any other.
pub fn answers(bytes: &[u8]) {
    on_one_thread();
    static ASKED: LazyLock<Vec<Asked>> =
        LazyLock::new(|| descriptors().into_iter().map(Asked::new).collect());
    let mut input = Input::new(bytes);
    let kind = input.byte();
    let Asked { table, pending } = &ASKED[usize::from(kind & 0x7f) % ASKED.len()];
    let (answer, length) = (input.rest(), table.facts().answer_bytes);
    let answer = if kind & 0x80 == 0 { fitted(answer, length) } else { answer.to_vec() };
    match bounded(FIXED + 64 * length, || table.decode(pending, &answer)) {
        Ok(found) => {
            let longest = table.descriptor().slot.max_value_bytes as usize;
            assert!(answer.len() == length && found.is_none_or(|value| value.len() <= longest));
        }
        Err(error) => {
            let is_padding = error.to_string().contains(&HeError::PackedPadding.to_string());
            assert!(answer.len() != length || is_padding, "{error}");
        }
    }
}

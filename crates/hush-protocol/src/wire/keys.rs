//! Evaluation keys on the wire.

use prost::{Message, bytes::Bytes, length_delimiter_len};

use super::{EvaluationKeys, VERSION, WireError};

/// The longest name of a parameter set, in bytes.
pub const MAX_PRESET_BYTES: usize = 64;

/// Decodes evaluation keys. Checks the version and the length of the parameter set's name. The lengths of
/// `seed` and `words` must be checked by a caller that knows the set.
///
/// The memory is bounded by `body`, from which the result borrows.
pub fn decode_keys(body: Bytes) -> Result<EvaluationKeys, WireError> {
    let keys = EvaluationKeys::decode(body)?;
    if keys.version != VERSION {
        return Err(WireError::Version { expected: VERSION, actual: keys.version });
    }
    let actual = keys.preset.len();
    if !(1..=MAX_PRESET_BYTES).contains(&actual) {
        return Err(WireError::PresetLength { max: MAX_PRESET_BYTES, actual });
    }
    Ok(keys)
}

/// Returns the exact length of an encoded [`EvaluationKeys`] in bytes. `seed_bytes` and `word_bytes` are the
/// lengths of its seed and words. All lengths must be above 0.
pub fn encoded_keys_bytes(preset: &str, seed_bytes: usize, word_bytes: usize) -> usize {
    const VERSION_FIELD: usize = 2;
    fn field(bytes: usize) -> usize {
        1 + length_delimiter_len(bytes) + bytes
    }
    VERSION_FIELD + field(preset.len()) + field(seed_bytes) + field(word_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> EvaluationKeys {
        EvaluationKeys {
            version: VERSION,
            preset: "toy".into(),
            seed: vec![1, 2].into(),
            words: vec![3, 4, 5].into(),
        }
    }

    /// Fails if any byte of the format changes.
    #[test]
    fn format_is_frozen() {
        let expected = b"\x08\x01\x12\x03toy\x1a\x02\x01\x02\x22\x03\x03\x04\x05";
        assert_eq!(keys().encode_to_vec(), expected);
        assert_eq!(decode_keys(Bytes::from_static(expected)), Ok(keys()));
    }

    #[test]
    fn the_length_is_known_before_encoding() {
        for (seed, words) in [(1, 1), (32, 127), (32, 128), (32, 16_383), (32, 16_384), (64, 3 << 20)] {
            let keys = EvaluationKeys { seed: vec![0; seed].into(), words: vec![0; words].into(), ..keys() };
            assert_eq!(keys.encoded_len(), encoded_keys_bytes("toy", seed, words));
        }
    }

    #[test]
    fn every_check_names_what_is_wrong() {
        let error = |keys: EvaluationKeys| decode_keys(keys.encode_to_vec().into()).unwrap_err();
        let with_preset = |bytes| EvaluationKeys { preset: "x".repeat(bytes), ..keys() };
        assert_eq!(
            error(EvaluationKeys { version: 2, ..keys() }),
            WireError::Version { expected: VERSION, actual: 2 }
        );
        assert_eq!(error(with_preset(0)), WireError::PresetLength { max: 64, actual: 0 });
        assert_eq!(error(with_preset(65)), WireError::PresetLength { max: 64, actual: 65 });
        assert!(decode_keys(with_preset(64).encode_to_vec().into()).is_ok());
    }

    #[test]
    fn damaged_keys_are_errors_or_other_keys() {
        let bytes = keys().encode_to_vec();
        for end in 0..bytes.len() {
            let cut = decode_keys(bytes[..end].to_vec().into());
            assert_ne!(cut, Ok(keys()), "cut at {end}");
        }
        assert!(matches!(decode_keys(Bytes::from_static(&[0xff; 40])), Err(WireError::Malformed(_))));
        assert!(matches!(decode_keys(Bytes::from_static(b"\x12\x01\xff")), Err(WireError::Malformed(_))));
    }
}

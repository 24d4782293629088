//! Tests of the spool: records on disk, with duplicates settled.

use hush_ingest::{IngestError, OnDuplicate, Record, Spool, SpooledRecords, UnknownOnDuplicate};
use tempfile::tempdir;

fn keyed(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Record {
    Record { key: Some(key.as_ref().into()), value: value.as_ref().into() }
}

fn spool(records: &[Record], on_duplicate: OnDuplicate) -> Result<SpooledRecords, IngestError> {
    let folder = tempdir().unwrap();
    let mut spool = Spool::create(folder.path()).unwrap();
    for record in records {
        spool.push(record).unwrap();
    }
    assert_eq!(spool.len(), records.len());
    // The file has no name, so nothing can be left behind.
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    spool.finish(on_duplicate)
}

fn contents(records: &SpooledRecords) -> Vec<(Vec<u8>, Vec<u8>, u64)> {
    (0..records.len())
        .map(|at| (records.record(at).0.to_vec(), records.record(at).1.to_vec(), records.row(at)))
        .collect()
}

#[test]
fn records_come_back_in_order() {
    let mut input: Vec<Record> =
        (0..3000u32).map(|i| keyed(i.to_le_bytes(), vec![i as u8; (i as usize * 37) % 500])).collect();
    input.push(keyed("", ""));
    input.push(keyed([0xff; 4096], vec![7; 65_536]));
    let records = spool(&input, OnDuplicate::Error).unwrap();
    assert!(records.has_keys() && !records.is_empty());
    assert_eq!(records.len(), input.len());
    for (at, record) in input.iter().enumerate() {
        assert_eq!(records.record(at), (record.key.as_deref().unwrap(), record.value.as_slice()));
        assert_eq!(records.row(at), at as u64 + 1);
    }
    assert_eq!((records.min_value_len(), records.max_value_len()), (0, 65_536));
    let bytes: usize = input.iter().map(|record| record.value.len()).sum();
    assert_eq!(records.value_bytes(), bytes as u64);
}

#[test]
fn records_without_keys_are_never_duplicates() {
    let input = vec![Record { key: None, value: b"same".to_vec() }; 5];
    let records = spool(&input, OnDuplicate::Error).unwrap();
    assert!(!records.has_keys());
    assert_eq!(records.len(), 5);
    assert_eq!(records.record(4), (&b""[..], &b"same"[..]));
}

#[test]
fn an_empty_spool_has_no_records() {
    let records = spool(&[], OnDuplicate::Error).unwrap();
    assert!(records.is_empty() && !records.has_keys());
    assert_eq!((records.min_value_len(), records.max_value_len(), records.value_bytes()), (0, 0, 0));
}

#[test]
fn duplicates_are_refused_or_settled() {
    let input = [
        keyed("a", "1"),
        keyed("b", "22"),
        keyed("c", "333"),
        keyed("c", "4444"),
        keyed("a", "55555"),
        keyed("c", ""),
        keyed("d", "7"),
    ];
    // The error is about the first row that repeats a key, whatever the order of the hashes.
    for _ in 0..20 {
        let error = spool(&input, OnDuplicate::Error).err().unwrap();
        assert_eq!(
            error.to_string(),
            "rows 3 and 4 both have the key \"c\"; keep one with 'on-duplicate: first' or \
             'on-duplicate: last', or a list of them with 'on-duplicate: all'"
        );
        assert!(matches!(error, IngestError::DuplicateKey { first_row: 3, second_row: 4, .. }));
    }
    let texts = |on_duplicate| {
        let records = spool(&input, on_duplicate).unwrap();
        let longest = records.max_value_len();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let list = contents(&records).into_iter().map(|(key, value, row)| (text(key), text(value), row));
        (list.collect::<Vec<_>>(), longest)
    };
    let expected = |list: &[(&str, &str, u64)]| -> Vec<(String, String, u64)> {
        list.iter().map(|(key, value, row)| (key.to_string(), value.to_string(), *row)).collect()
    };
    let first = expected(&[("a", "1", 1), ("b", "22", 2), ("c", "333", 3), ("d", "7", 7)]);
    assert_eq!(texts(OnDuplicate::First), (first, 3));
    let last = expected(&[("b", "22", 2), ("a", "55555", 5), ("c", "", 6), ("d", "7", 7)]);
    assert_eq!(texts(OnDuplicate::Last), (last, 5));
}

#[test]
fn empty_keys_with_empty_values_are_duplicates_too() {
    let input = [keyed("", ""), keyed("", ""), keyed("x", "")];
    let error = spool(&input, OnDuplicate::Error).err().unwrap();
    assert!(matches!(error, IngestError::DuplicateKey { first_row: 1, second_row: 2, .. }));
    assert_eq!(spool(&input, OnDuplicate::Last).unwrap().len(), 2);
}

#[test]
fn wrong_records_are_refused() {
    let folder = tempdir().unwrap();
    let mut spool = Spool::create(folder.path()).unwrap();
    assert!(spool.is_empty());
    spool.push(&keyed("a", "1")).unwrap();
    let error = spool.push(&Record { key: None, value: Vec::new() });
    assert!(matches!(error, Err(IngestError::MixedKeys { row: 2 })));
    let error = spool.push(&keyed([0; 4097], ""));
    assert!(matches!(error, Err(IngestError::KeyTooLong { actual: 4097, limit: 4096, .. })));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = Spool::create("/nowhere/at/all".as_ref()).err().unwrap();
    assert!(matches!(&error, IngestError::Spool { .. }));
    assert!(
        error.to_string().starts_with("/nowhere/at/all: cannot write a temporary file: No such file"),
        "{error}"
    );
}

#[test]
fn duplicate_modes_are_parsed() {
    assert_eq!("error".parse(), Ok(OnDuplicate::Error));
    assert_eq!("first".parse(), Ok(OnDuplicate::First));
    assert_eq!("last".parse(), Ok(OnDuplicate::Last));
    assert_eq!("First".parse::<OnDuplicate>(), Err(UnknownOnDuplicate));
    assert_eq!(OnDuplicate::default(), OnDuplicate::Error);
}

#[test]
fn the_digest_is_of_what_a_table_is_made_of() {
    let digest = |records: &[Record]| spool(records, OnDuplicate::Last).unwrap().digest();
    let records = [keyed("a", "1"), keyed("b", "22"), keyed("c", "")];
    let known = digest(&records);
    assert_eq!(digest(&records), known);
    assert_ne!(spool(&records, OnDuplicate::First).unwrap().digest(), known);
    for others in [
        [keyed("b", "22"), keyed("a", "1"), keyed("c", "")],
        [keyed("a", "1"), keyed("b", "23"), keyed("c", "")],
        [keyed("a", "1"), keyed("b2", "2"), keyed("c", "")],
        [keyed("a", "1"), keyed("b", "22c"), keyed("", "")],
    ] {
        assert_ne!(digest(&others), known);
    }
    assert_ne!(digest(&records[..2]), known);
    let without_key = Record { key: None, value: b"1".to_vec() };
    assert_ne!(digest(&[without_key]), digest(&[keyed("", "1")]));
}

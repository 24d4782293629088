//! A table that clients download: looked up without a query, and never decompressed beyond what its descriptor says.

use hush_client::{ClientError, Wanted, session::SessionError};
use hush_protocol::{
    Protocol,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, Lookup},
    slot::SlotFormat,
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{
    driver::Driver,
    indices,
    message::{Reply, Request},
    open,
    sample::NAME,
};

const RECORDS: usize = 3000;
const VALUE_BYTES: usize = 40;

fn value(version: u8, index: u64) -> Vec<u8> {
    [&[version][..], &(index as u32).to_le_bytes()[..3], &[b'x'; VALUE_BYTES - 4]].concat()
}

/// Returns a table whose clients download `blob`.
fn descriptor(blob: &[u8]) -> Descriptor {
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: Protocol::Download,
        preset: "DOWNLOAD".into(),
        records: RECORDS as u64,
        columns: RECORDS / 2,
        blocks: 2,
        word_bits: None,
        form: Default::default(),
        slot: SlotFormat::for_values(0, VALUE_BYTES, VALUE_BYTES),
        schema: None,
        compression: None,
        sorted: None,
        lookup: Lookup::Index,
        hint: Some(BlobRef { blake3: blake3::hash(blob).into(), bytes: blob.len() as u64 }),
        whitening: None,
        database: [0; 32],
        segments: Vec::new(),
        signature: None,
    };
    descriptor.seal();
    descriptor
}

fn slots(version: u8) -> Vec<u8> {
    (0..RECORDS as u64).flat_map(|index| value(version, index)).collect()
}

fn frame(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

/// Returns a server of the tables of `blobs`, each as long as so many descriptors were asked for.
fn server(blobs: Vec<(usize, Vec<u8>)>) -> Driver {
    let mut asked = 0;
    let tables: Vec<_> = blobs.into_iter().map(|(until, blob)| (until, descriptor(&blob), blob)).collect();
    Driver::new(move |request: &Request| {
        let path = request.path.as_str();
        if path == "/v1/tables" {
            let entry = serde_json::json!({ "name": NAME, "state": "resident" });
            return Reply::new(200, serde_json::json!({ "tables": [entry] }).to_string());
        }
        asked += usize::from(path == format!("/v1/tables/{NAME}"));
        let (_, descriptor, blob) =
            tables.iter().find(|(until, ..)| asked <= *until).unwrap_or(&tables[tables.len() - 1]);
        if path.starts_with("/v1/blobs/") {
            Reply::new(200, blob.clone())
        } else if path == format!("/v1/tables/{NAME}") {
            Reply::new(200, descriptor.to_json())
        } else {
            panic!("asked for {path}")
        }
    })
}

#[test]
fn nothing_of_a_look_up_is_sent() {
    let compressed = frame(&slots(1));
    assert!(compressed.len() < slots(1).len());
    for blob in [slots(1), compressed] {
        let mut driver = server(vec![(9, blob)]);
        let mut session = open(&mut driver).unwrap();
        let opened = driver.requests.len();
        for wanted in [&[7][..], &[0, 1499, 1500, 2999, 7, 7]] {
            let before = driver.requests.len();
            let found = driver.drive(session.look_up(&indices(wanted))).unwrap();
            let expected: Vec<_> = wanted.iter().map(|&index| Some(value(1, index))).collect();
            assert_eq!(found, expected);
            assert_eq!(driver.requests.len(), before + 1, "however many are wanted");
            let request = driver.requests.last().unwrap();
            assert_eq!((request.method.as_str(), request.body.len()), ("GET", 0));
        }
        assert_eq!((session.stats().queries, session.stats().answers, session.stats().bytes_up), (0, 7, 0));
        let absent = driver.drive(session.look_up(&[Wanted::Index(3000)])).unwrap_err();
        assert!(absent.to_string().contains("2999"), "{absent}");
        assert_eq!((opened, driver.requests.len(), driver.asked("/v1/blobs/").len()), (3, 6, 1));
    }
}

#[test]
fn a_new_epoch_is_looked_up_in_its_own_table() {
    let mut driver = server(vec![(2, frame(&slots(1))), (9, frame(&slots(2)))]);
    let mut session = open(&mut driver).unwrap();
    for (version, blobs) in [(1, 1), (2, 2), (2, 2)] {
        let found = driver.drive(session.look_up(&indices(&[5, 2000]))).unwrap();
        assert_eq!(found, [5, 2000].map(|index| Some(value(version, index))));
        assert_eq!(driver.asked("/v1/blobs/").len(), blobs);
    }
}

#[test]
fn a_frame_that_is_not_the_table_is_refused() {
    let whole = slots(1);
    let longer = [&whole[..], &[0; 1 << 20]].concat();
    let behind = [&frame(&whole)[..], &[0]].concat();
    for bad in [frame(&longer), frame(&whole[1..]), behind, b"no frame".to_vec(), whole[1..].to_vec()] {
        let error = open(&mut server(vec![(9, bad)])).err().expect("no table");
        assert!(matches!(error, SessionError::Client(ClientError::Compression)), "{error}");
    }
    let longer = open(&mut server(vec![(9, longer)])).err().expect("no table");
    assert!(longer.to_string().contains("hint"), "{longer}");
    // A short download may not become a long table.
    let mut driver = server(vec![(9, frame(&whole))]);
    driver.options.max_hint_bytes = whole.len() as u64 - 1;
    let error = open(&mut driver).err().expect("too long");
    assert!(matches!(error, SessionError::HintTooLong { bytes: 120_000, .. }), "{error}");
    assert!(driver.asked("/v1/blobs/").is_empty());
}

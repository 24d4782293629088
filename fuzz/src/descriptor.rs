//! Descriptors of tables.

use hush_protocol::{
    descriptor::{Descriptor, KeyLookup, Lookup, MAX_DESCRIPTOR_BYTES, Segment},
    keyword::{FilterParams, KeyDigest},
    layout,
    table::{MAX_COLUMNS, TableShape},
};

use crate::{
    allocation::{FIXED, bounded},
    input::Input,
    sample::Asked,
};

/// Most bytes of a look-up that is tried out.
const SMALL: u64 = 1 << 16;

/// A descriptor as a server sends it; or sealed before, as nobody guesses a hash.
pub fn descriptor(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (is_sealed, json) = (input.byte() & 1 == 1, input.rest());
    let json = if is_sealed { sealed(json) } else { Some(json.to_vec()) };
    let Some(json) = json else { return };
    let Ok(read) = bounded(FIXED + 16 * json.len(), || Descriptor::from_json(&json)) else { return };
    assert_eq!(Descriptor::from_json(&read.to_json()).as_ref(), Ok(&read));
    assert!(json.len() <= MAX_DESCRIPTOR_BYTES);
    if bounded(FIXED, || try_out(&read)) {
        Asked::new(read);
    }
}

/// Returns the descriptor with the epoch that it ought to have; `None` if the bytes are not a descriptor.
fn sealed(json: &[u8]) -> Option<Vec<u8>> {
    let mut descriptor: Descriptor = serde_json::from_slice(json).ok()?;
    descriptor.seal();
    Some(descriptor.to_json())
}

/// Does what every client does with a descriptor, and returns whether a look-up in its table is quick.
fn try_out(descriptor: &Descriptor) -> bool {
    let params = descriptor.params().expect("it was checked");
    let facts = params.facts();
    let shape = facts.shape;
    assert!((1..=MAX_COLUMNS).contains(&shape.columns) && shape.blocks > 0 && shape.slot_bytes > 0);
    let files = params.files();
    assert!(!files.is_empty() && files.iter().all(|file| file.content.bytes() > 0));
    assert!(facts.is_local() || !params.path().is_empty());
    let _ = (params.database(), params.hint());
    match &descriptor.lookup {
        Lookup::Index => {
            let (block, column) = layout::index_position(&shape, descriptor.records - 1);
            assert!(block < shape.blocks && column < shape.columns);
        }
        Lookup::Key(lookup) | Lookup::Position(lookup) => {
            try_keys(lookup, shape);
            descriptor.segments.iter().for_each(|segment| try_lanes(lookup, segment));
        }
    }
    let bytes =
        [facts.query.total() as u64, facts.answer_bytes as u64, facts.hint_bytes, shape.columns as u64 * 64];
    // A dictionary and fences are files that are not made here.
    let has_files = descriptor.compression.is_some() || descriptor.sorted.is_some();
    !has_files && facts.security_bits == 0.0 && bytes.into_iter().all(|bytes| bytes <= SMALL)
}

/// Where keys are in a segment beside the base.
fn try_lanes(lookup: &KeyLookup, segment: &Segment) {
    let lanes = segment.shape().lanes();
    for key in [&b""[..], b"a", b"another key"] {
        let digest = KeyDigest::new(&lookup.seed, key).expect("a short key");
        let entry = segment.entries - 1;
        assert!(segment.lanes.block_of(&digest, entry, lanes) < segment.blocks);
    }
}

/// Where keys are in a table.
fn try_keys(lookup: &KeyLookup, shape: TableShape) {
    let (map, filter) = (lookup.block_map(), FilterParams { kind: lookup.filter, slots: shape.columns });
    for key in [&b""[..], b"a", b"another key"] {
        let digest = KeyDigest::new(&lookup.seed, key).expect("a short key");
        let block = map.block_of(&digest);
        assert!(block < shape.blocks);
        let support = filter.support(&digest, map.seeds[block]);
        assert!(support.iter().all(|&(column, _)| (column as usize) < shape.columns));
        assert!(support.windows(2).all(|pair| pair[0].0 < pair[1].0), "every column once");
    }
}

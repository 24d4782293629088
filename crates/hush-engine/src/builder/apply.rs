//! Changes to a table that is there: its segments of changes anew, everything else as it is.

use std::path::Path;

use hush_protocol::{descriptor::Role, keyword::KeyDigest, signature::SigningKey};
use hush_store::{
    ingest::{Compressor, IngestError},
    snapshot::{CHANGES_FILE, Changes, DICTIONARY_FILE, Header, Snapshot, SnapshotWriter, segment_file},
};

use super::{BuildError, WRITTEN_BY, beside::Beside, delta::Delta, hints, seal};
use crate::{Backends, Progress};

/// Makes a new epoch of the table in `dir`, of which `snapshot` is open. `changes` are all since the base was made, those of the
/// last epoch included. `writer` puts it in the place of the old one.
///
/// # Errors
/// [`BuildError::NotUpdatable`] if the table has no room for changes; [`BuildError::ChangesFull`] and [`BuildError::ChangeTooLong`]
/// if these do not fit. The target is then as it was.
pub fn apply(
    dir: &Path,
    mut snapshot: Snapshot,
    changes: &Changes,
    key: Option<&SigningKey>,
    writer: SnapshotWriter,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Header, BuildError> {
    let mut header = snapshot.header().clone();
    let (Some(count), descriptor) = (header.changes, &mut header.descriptor) else {
        return Err(BuildError::NotUpdatable);
    };
    let (params, first) = (descriptor.params()?, 1 + descriptor.tiers());
    let Some(lookup) = descriptor.lookup.keys() else { return Err(BuildError::NotUpdatable) };
    let longest = descriptor.slot.max_value_bytes as usize;
    let values = stored_values(changes, descriptor.compression.is_some(), &mut snapshot)?;
    for (key, value) in changes.0.keys().zip(&values) {
        let bytes = value.as_ref().map_or(0, Vec::len);
        if bytes > longest {
            let key = String::from_utf8_lossy(key).chars().take(80).collect();
            return Err(BuildError::ChangeTooLong { key, bytes, longest });
        }
    }
    let digest = |key: &Vec<u8>| KeyDigest::new(&lookup.seed, key);
    let digests = changes.0.keys().map(digest).collect::<Result<Vec<_>, _>>()?;
    let (block_map, base, cpu) = (lookup.block_map(), params.base().facts(), backends.cpu());
    let shapes: Vec<_> = descriptor.segments[first - 1..].iter().map(|segment| segment.shape()).collect();
    let beside = Beside {
        digest: &|key| digests[key as usize].clone(),
        block_map: &block_map,
        filter: lookup.filter,
        base,
        cpu,
        progress,
    };
    let delta = Delta { beside, values: &values, room: count.room as usize };
    let laid = delta.lay_out(&params, first, &shapes, longest, &writer)?;

    let of_changes = |name: &str| {
        name == CHANGES_FILE
            || name.split_once('.').is_some_and(|(number, own)| {
                number.parse().is_ok_and(|number: usize| number >= first && segment_file(number, own) == name)
            })
    };
    header.files.retain(|file| !of_changes(&file.name));
    for file in &header.files {
        writer.take_file(dir, file)?;
    }
    descriptor.segments.retain(|segment| segment.role == Role::Tier);
    for (segment, written) in laid {
        let (segment, file) = written.finish(segment)?;
        descriptor.segments.push(segment);
        header.files.push(file);
    }
    hints(descriptor, first, &mut header.files, &writer, backends, progress)?;
    header.files.push(writer.keep_changes(changes)?);
    seal(descriptor, key)?;
    header.changes = Some(changes.count(count.room));
    header.written_by = WRITTEN_BY.into();
    writer.commit(&header)?;
    Ok(header)
}

/// The values as they are in slots: compressed, if those of the table are.
fn stored_values(
    changes: &Changes,
    is_compressed: bool,
    snapshot: &mut Snapshot,
) -> Result<Vec<Option<Vec<u8>>>, BuildError> {
    if !is_compressed {
        return Ok(changes.0.values().cloned().collect());
    }
    let dictionary = snapshot.take_checked(DICTIONARY_FILE)?;
    let compressor = Compressor::with_dictionary(dictionary.as_ref());
    let mut context = compressor.context();
    let compress = |value: &Option<Vec<u8>>| {
        value.as_ref().map(|value| Compressor::compress(&mut context, value)).transpose()
    };
    let values: Result<_, _> = changes.0.values().map(compress).collect();
    Ok(values.map_err(IngestError::Compress)?)
}

//! Applies changes to an existing table: writes its change segments anew, and takes all other files over.

use std::{borrow::Cow, path::Path};

use hush_engine::Progress;
use hush_ingest::{Compressor, IngestError, shown_key};
use hush_protocol::descriptor::{Descriptor, Lookup, Role};
use hush_store::snapshot::{
    ADDED_FENCES_FILE, CHANGES_FILE, Changes, DICTIONARY_FILE, FollowedPosition, Header, Snapshot,
    SnapshotWriter, segment_of,
};

use crate::builder::{
    BuildError, Computers, Signing, WRITTEN_BY, hints, layout::delta::ChangeLayout, sign::seal, write_fences,
};
use crate::sorted::SortedTable;

/// The changes that are applied to a table.
pub struct Applied<'a> {
    /// All changes since the base was made, including those of the last epoch: in a sorted table, of leaves.
    pub changes: &'a Changes,
    /// The new description of a sorted table.
    pub sorted: Option<&'a SortedTable>,
    /// The position in the changes of a database behind these; `None` keeps the present one.
    pub followed: Option<FollowedPosition>,
}

/// Makes a new epoch of the table in `dir`, which is open as `snapshot`. `writer` replaces the old epoch with the new one, of this
/// table or of the one that `dir` has a new base of.
///
/// # Errors
/// [`BuildError::NotUpdatable`] if the table has no room for changes; [`BuildError::ChangesFull`],
/// [`BuildError::ChangeTooLong`] and [`BuildError::ChangeTooDense`] if the changes do not fit. The target is then unchanged.
pub fn apply<'a>(
    dir: &Path,
    mut snapshot: Snapshot,
    applied: Applied<'_>,
    signing: Option<&Signing>,
    writer: SnapshotWriter,
    by: impl Into<Computers<'a>>,
    progress: &dyn Progress,
) -> Result<Header, BuildError> {
    let Applied { changes, sorted, followed } = applied;
    let by = by.into();
    let mut header = snapshot.header().clone();
    let (Some(count), descriptor) = (header.changes, &mut header.descriptor) else {
        return Err(BuildError::NotUpdatable);
    };
    let params = descriptor.params()?;
    let first = 1 + descriptor.tiers();
    let Some(lookup) = descriptor.lookup.keys() else { return Err(BuildError::NotUpdatable) };
    let longest = descriptor.slot.max_value_bytes as usize;
    let key = |key| shown_change(key, descriptor);
    // Clients refuse values that are longer than the table states, also where they become short when they are compressed.
    let uncompressed = descriptor.compression.as_ref().map(|own| own.max_value_bytes as usize);
    if let Some((name, bytes)) = longer(changes, uncompressed.unwrap_or(longest)) {
        let longest = uncompressed.unwrap_or(longest);
        return Err(BuildError::ChangeTooLong { key: key(name), bytes, longest });
    }
    let stored = as_stored(changes, uncompressed.is_some(), &mut snapshot)?;
    if let Some((name, compressed)) = longer(&stored, longest) {
        let bytes = changes.0[name].as_ref().map_or(0, Vec::len);
        return Err(BuildError::ChangeTooDense { key: key(name), bytes, compressed, longest });
    }
    let shapes: Vec<_> = descriptor.segments[first - 1..].iter().map(|segment| segment.shape()).collect();
    let delta = ChangeLayout {
        changes: &stored,
        room: count.room as usize,
        seed: &lookup.seed,
        block_map: &lookup.block_map(),
        filter: lookup.filter,
        cpu: by.backends.cpu(),
        crew: by.crew,
        progress,
    };
    let laid = delta.lay_out(&params, first, &shapes, longest, &writer)?;

    let is_new = |name: &str| name == CHANGES_FILE || name == ADDED_FENCES_FILE;
    header.files.retain(|file| !is_new(&file.name) && segment_of(&file.name).0 < first);
    for file in &header.files {
        writer.take_file(dir, file)?;
    }
    descriptor.segments.retain(|segment| segment.role == Role::Tier);
    for (segment, written) in laid {
        let (segment, file) = written.finish(segment)?;
        descriptor.segments.push(segment);
        header.files.push(file);
    }
    hints(descriptor, first, &mut header.files, &writer, by, progress)?;
    header.files.push(writer.keep_changes(changes)?);
    if let Some(table) = sorted {
        if table.sorted.added.is_some() {
            header.files.push(write_fences(ADDED_FENCES_FILE, &table.fences, &writer)?);
        }
        descriptor.sorted = Some(table.sorted.clone());
    }
    seal(descriptor, signing, writer.target())?;
    header.changes = Some(changes.count(count.room));
    header.followed = followed.or(header.followed);
    header.written_by = WRITTEN_BY.into();
    writer.commit(&header)?;
    Ok(header)
}

/// Returns the first change whose value has more than `longest` bytes, and the number of them.
fn longer(changes: &Changes, longest: usize) -> Option<(&Vec<u8>, usize)> {
    let lengths = changes.0.iter().map(|(key, value)| (key, value.as_ref().map_or(0, Vec::len)));
    lengths.into_iter().find(|&(_, bytes)| bytes > longest)
}

/// Returns the key of a change for a message. In a table by position, it is the position.
pub(crate) fn shown_change(key: &[u8], descriptor: &Descriptor) -> String {
    if let Some(sorted) = &descriptor.sorted {
        return sorted.order.decode(key).unwrap_or_else(|| shown_key(key));
    }
    match (&descriptor.lookup, <[u8; 8]>::try_from(key)) {
        (Lookup::Position(_), Ok(position)) => u64::from_le_bytes(position).to_string(),
        _ => shown_key(key),
    }
}

/// Returns the changes with their values as slots hold them: compressed, if the table's values are compressed.
fn as_stored<'a>(
    changes: &'a Changes,
    is_compressed: bool,
    snapshot: &mut Snapshot,
) -> Result<Cow<'a, Changes>, BuildError> {
    if !is_compressed {
        return Ok(Cow::Borrowed(changes));
    }
    let dictionary = snapshot.take_checked(DICTIONARY_FILE)?;
    let compressor = Compressor::with_stored(dictionary.as_ref());
    dictionary.check()?;
    let compressor = compressor.map_err(IngestError::Compress)?;
    let mut context = compressor.context();
    let compressed = changes
        .0
        .iter()
        .map(|(key, value): (&Vec<u8>, &Option<Vec<u8>>)| {
            let compress = |value: &Vec<u8>| Compressor::compress(&mut context, value);
            Ok((key.clone(), value.as_ref().map(compress).transpose()?))
        })
        .collect::<Result<_, _>>();
    Ok(Cow::Owned(Changes(compressed.map_err(IngestError::Compress)?)))
}

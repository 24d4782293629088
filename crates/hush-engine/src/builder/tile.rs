//! A tile of a database in evaluation form, written to its places in the file.

use hush_ops::ntt_tiling::{GROUP_SLOTS, NttTiling};
use hush_store::snapshot::MappedOutput;

use super::BuildError;

/// Writes tile `tile` of the database in `file`, of `tiling`. `bytes` are the tile as a database of its own, of `part`: its
/// chunks one after another. As such it may be narrower than in `tiling`, if it is the last of several and has few columns.
pub(super) fn write_tile(
    file: &MappedOutput,
    tiling: NttTiling,
    tile: usize,
    part: NttTiling,
    bytes: &[u8],
) -> Result<(), BuildError> {
    let chunk_bytes = |tiling: NttTiling| size_of::<u32>() * tiling.chunk_words();
    let [narrow, wide] = [part, tiling].map(|tiling| size_of::<u32>() * tiling.tile_width());
    let mut widened = vec![0; if narrow == wide { 0 } else { chunk_bytes(tiling) }];
    for (index, chunk) in bytes.chunks_exact(chunk_bytes(part)).enumerate() {
        let (limb, group) = (index / tiling.groups(), index % tiling.groups());
        let at = tiling.offset(limb, group * GROUP_SLOTS, 0, tiling.tile_columns(tile).start);
        let chunk = if narrow == wide {
            chunk
        } else {
            let lines = widened.chunks_exact_mut(wide).zip(chunk.chunks_exact(narrow));
            lines.for_each(|(to, from)| to[..narrow].copy_from_slice(from));
            &widened
        };
        file.write_at(size_of::<u32>() * at, chunk)?;
    }
    Ok(())
}

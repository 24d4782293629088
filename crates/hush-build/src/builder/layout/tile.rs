//! A tile of a database in evaluation form, in its places in the file.

use hush_ops::ntt_tiling::{GROUP_SLOTS, NttTiling};
use hush_store::snapshot::MappedOutput;

use crate::builder::BuildError;

/// Returns the bytes of a chunk of a tiling.
fn chunk_bytes(tiling: NttTiling) -> usize {
    size_of::<u32>() * tiling.chunk_words()
}

/// Returns where the chunks of a tile are in the file, in bytes, in order.
fn places(tiling: NttTiling, tile: usize) -> impl Iterator<Item = usize> {
    let column = tiling.tile_columns(tile).start;
    (0..tiling.limbs() * tiling.groups()).map(move |index| {
        let limb = index / tiling.groups();
        let group = index % tiling.groups();
        size_of::<u32>() * tiling.offset(limb, group * GROUP_SLOTS, 0, column)
    })
}

/// Returns the bytes of a line of two tilings: as many words as a tile is wide.
fn widths(tilings: [NttTiling; 2]) -> [usize; 2] {
    tilings.map(|tiling| size_of::<u32>() * tiling.tile_width())
}

/// Writes tile `tile` of the database in `file`, of `tiling`. `bytes` are the tile as a database of its own, of `part`: its
/// chunks one after another. As such it may be narrower than in `tiling`, if it is the last of several and has few columns.
pub(in crate::builder) fn write_tile(
    file: &MappedOutput,
    tiling: NttTiling,
    tile: usize,
    part: NttTiling,
    bytes: &[u8],
) -> Result<(), BuildError> {
    let [narrow, wide] = widths([part, tiling]);
    let mut widened = vec![0; if narrow == wide { 0 } else { chunk_bytes(tiling) }];
    for (at, chunk) in places(tiling, tile).zip(bytes.chunks_exact(chunk_bytes(part))) {
        let chunk = if narrow == wide {
            chunk
        } else {
            let lines = widened.chunks_exact_mut(wide).zip(chunk.chunks_exact(narrow));
            lines.for_each(|(to, from)| to[..narrow].copy_from_slice(from));
            &widened
        };
        file.write_at(at, chunk)?;
    }
    Ok(())
}

/// Gives what [`write_tile`] has written to `take`: the same bytes, some after another.
pub(in crate::builder) fn each_chunk(
    file: &[u8],
    tiling: NttTiling,
    tile: usize,
    part: NttTiling,
    take: &mut dyn FnMut(&[u8]),
) {
    let [narrow, wide] = widths([part, tiling]);
    for at in places(tiling, tile) {
        let chunk = &file[at..at + chunk_bytes(tiling)];
        if narrow == wide {
            take(chunk);
            continue;
        }
        chunk.chunks_exact(wide).for_each(|line| take(&line[..narrow]));
    }
}

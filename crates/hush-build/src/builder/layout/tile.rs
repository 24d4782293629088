//! Tiles of a database in evaluation form, written to and read from their offsets in the file.

use hush_ops::ntt_tiling::{GROUP_SLOTS, NttTiling};
use hush_store::snapshot::MappedOutput;

use crate::builder::BuildError;

/// Returns the bytes of a chunk of a tiling.
fn chunk_bytes(tiling: NttTiling) -> usize {
    size_of::<u32>() * tiling.chunk_words()
}

/// Returns the byte offsets of a tile's chunks in the file, in order.
fn places(tiling: NttTiling, tile: usize) -> impl Iterator<Item = usize> {
    let column = tiling.tile_columns(tile).start;
    (0..tiling.limbs() * tiling.groups()).map(move |index| {
        let limb = index / tiling.groups();
        let group = index % tiling.groups();
        size_of::<u32>() * tiling.offset(limb, group * GROUP_SLOTS, 0, column)
    })
}

/// Returns the bytes of a line in each of two tilings. A line has as many words as a tile is wide.
fn widths(tilings: [NttTiling; 2]) -> [usize; 2] {
    tilings.map(|tiling| size_of::<u32>() * tiling.tile_width())
}

/// Writes tile `tile` of the database with `tiling` into `file`. `bytes` is the tile as a separate database with tiling `part`:
/// its chunks, one after another. The last tile, with few columns, may be narrower there than in `tiling`.
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

/// Passes the bytes that [`write_tile`] has written to `take`, in order, chunk by chunk or line by line.
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

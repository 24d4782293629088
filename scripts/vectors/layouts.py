"""Layouts of stored databases: tiles of bytes, and tiles of polynomials in evaluation form (docs/reference/file-formats.md, Databases)."""

import numpy as np

ROWS, COLUMNS, PANELS, TILES = 32, 64, 16, 8  # rows of a panel, columns of a tile, panels of a group, tiles of a chunk
SLOTS, WIDTH = 16, 16  # slots of a group, and the most columns of a tile


def tiled(matrix: np.ndarray) -> bytes:
    """Reorders a matrix to `[group of 16 panels][chunk of 8 tiles][panel of 32 rows][tile of 64 columns][row][column]`, padded."""
    rows, columns = matrix.shape
    padded = np.pad(matrix, ((0, -rows % ROWS), (0, -columns % COLUMNS)))
    out = []
    for group in range(0, len(padded), PANELS * ROWS):
        for chunk in range(0, padded.shape[1], TILES * COLUMNS):
            part = padded[group : group + PANELS * ROWS, chunk : chunk + TILES * COLUMNS]
            tiles = part.reshape(len(part) // ROWS, ROWS, -1, COLUMNS).transpose(0, 2, 1, 3)
            out.append(tiles.tobytes())
    return b"".join(out)


def tiled_polys(polys: np.ndarray) -> bytes:
    """Reorders `[row][column][limb][slot]` to `[limb][group of 16 slots][tile of columns][slot][row][column of the tile]`."""
    rows, columns, limbs, degree = polys.shape
    width = min(WIDTH, 1 << (columns - 1).bit_length())
    out = np.zeros((limbs, degree // SLOTS, -(-columns // width), SLOTS, rows, width), "<u4")
    for column in range(columns):
        words = polys[:, column].reshape(rows, limbs, degree // SLOTS, SLOTS)
        out[:, :, column // width, :, :, column % width] = words.transpose(1, 2, 3, 0)
    return out.tobytes()


class Entries:
    """The assignment of rows to plaintexts of N coefficients, for packed answers. An entry has `lanes` blocks, or one block that is cut
    into planes of N rows."""

    def __init__(self, degree: int, blocks: int, slot_bytes: int, lanes: int | None = None):
        self.degree, self.slot_bytes, self.rows = degree, slot_bytes, blocks * slot_bytes
        self.lanes = lanes or max(degree // slot_bytes, 1)
        self.entry_rows = self.lanes * slot_bytes
        self.planes = -(-self.entry_rows // degree)
        self.count = -(-self.rows // self.entry_rows)

    def place(self, block: int) -> tuple[int, int]:
        """Returns the entry and the lane of a block."""
        return divmod(block, self.lanes)

    @property
    def plaintexts(self) -> list[range]:
        """The rows of every plaintext; the planes of an entry follow one another."""
        out = []
        for entry in range(self.count):
            end = min((entry + 1) * self.entry_rows, self.rows)
            for plane in range(self.planes):
                start = min(entry * self.entry_rows + plane * self.degree, end)
                out.append(range(start, min(start + self.degree, end)))
        return out

"""The positions of a key's slots (docs/reference/file-formats.md, Keys)."""

import blake3

Support = list[tuple[int, int]]  # columns and coefficients


def u64(octets: bytes, at: int) -> int:
    return int.from_bytes(octets[at : at + 8], "little")


def scale(word: int, size: int) -> int:
    return word * size >> 64


def block_of(digest: bytes, thresholds: bytes) -> int:
    first, blocks = scale(u64(digest, 0), len(thresholds)), len(thresholds)
    second = (first + 1 + scale((u64(digest, 8) << 8) % 2**64, blocks - 1)) % blocks
    return second if digest[15] < thresholds[first] else first


def block_beside(digest: bytes, entry: int, segment: dict) -> int:
    """Returns the block of a key in a delta segment, in which its entry is `entry` modulo the number of entries (Segments)."""
    entry %= segment["entries"]
    lanes = segment["blocks"] // segment["entries"]
    seed = bytes.fromhex(segment["lanes"]["seeds"])[entry : entry + 1]
    thresholds = bytes.fromhex(segment["lanes"]["thresholds"])[entry * lanes : (entry + 1) * lanes]
    return entry * lanes + block_of(blake3.blake3(b"l" + seed, key=digest).digest(), thresholds)


def support_of(digest: bytes, block_seed: bytes, name: str, columns: int) -> Support:
    """Returns the columns, and their coefficients, that add up to a key's slot."""
    octets = blake3.blake3(block_seed, key=digest).digest(length=64)
    p = [u64(octets, at) for at in range(0, 64, 8)]
    if name.startswith("band"):
        width = min(int(name.removeprefix("band")), columns)
        start = scale(p[0], columns + 1 - width)
        return [(start + j, 1 if j == 0 else p[4 + j // 64] >> j % 64 & 1) for j in range(width)]
    arity, size = min(int(name.removeprefix("fuse")), columns), columns.bit_length() - 1
    if size <= (11 if arity <= 3 else 9):
        wanted = columns // 4
    else:
        wanted = 1 << ((6 * size + 5) // 10 if arity <= 3 else (7 * size - 11) // 10)
    count = max(columns // max(wanted, 1), arity)
    length, first = columns // count, scale(p[0], count + 1 - arity)
    return [((first + i) * length + scale(p[1 + i], length), 1) for i in range(arity)]

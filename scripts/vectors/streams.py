"""Randomness: ChaCha20 streams, their keys by BLAKE3, and samples from them (docs/reference/file-formats.md, Streams)."""

import functools
import math

import blake3
import numpy as np

AHEAD = 512  # blocks that are made at once: numpy takes hardly longer than for one
CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")


class Stream:
    """The words of ChaCha20 under a key, with a 64-bit block counter from 0 and a 64-bit stream number."""

    def __init__(self, key: bytes, number: int = 0):
        self.key, self.number = np.frombuffer(key, "<u4"), number
        self.next_block, self.rest = 0, np.empty(0, np.uint32)

    def words(self, count: int) -> np.ndarray:
        """Returns the next words of 32 bits."""
        if count > len(self.rest):
            blocks = max(-(-(count - len(self.rest)) // 16), AHEAD)
            self.rest = np.concatenate([self.rest, chacha20(self.key, self.number, self.next_block, blocks)])
            self.next_block += blocks
        words, self.rest = self.rest[:count], self.rest[count:]
        return words

    def words64(self, count: int) -> np.ndarray:
        """Returns the next words of 64 bits, each made of two words, the low half first."""
        low, high = self.words(2 * count).astype(np.uint64).reshape(count, 2).T
        return high << np.uint64(32) | low

    def bytes(self, count: int) -> bytes:
        """Returns the next bytes. The unused bytes of the last word are lost."""
        return self.words(-(-count // 4)).astype("<u4").tobytes()[:count]


def chacha20(key: np.ndarray, number: int, first: int, count: int) -> np.ndarray:
    """Returns the blocks `first ..` of the key stream, computed at once: a row of `state` has one word of every block."""
    counter = np.arange(first, first + count, dtype=np.uint64)
    state = np.empty((16, count), np.uint32)
    state[:4], state[4:12] = CONSTANTS[:, None], key[:, None]
    state[12], state[13] = counter & np.uint64(0xFFFFFFFF), counter >> np.uint64(32)
    state[14], state[15] = number & 0xFFFFFFFF, number >> 32
    mixed = state.copy()
    for _ in range(10):
        for at in range(4):
            quarter_round(mixed, at, 4 + at, 8 + at, 12 + at)
        for at in range(4):
            quarter_round(mixed, at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4)
    return (mixed + state).T.ravel()


def quarter_round(x: np.ndarray, a: int, b: int, c: int, d: int) -> None:
    for left, right, target, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[left] += x[right]
        turned = x[target] ^ x[left]
        x[target] = turned << np.uint32(bits) | turned >> np.uint32(32 - bits)


def derived(domain: str, material: bytes, number: int = 0) -> Stream:
    """Returns the stream of a domain string. BLAKE3 in its key derivation mode makes its key from `material`."""
    return Stream(blake3.blake3(material, derive_key_context=domain).digest(), number)


def insecure(seed: int) -> Stream:
    """Returns the stream of a small seed, for known answers only: eight outputs of PCG32 are the key."""
    key = b""
    for _ in range(8):
        seed = (seed * 0x5851F42D4C957F2D + 0xA17654E46FBE17F3) % 2**64
        word, turn = ((seed >> 18 ^ seed) >> 27) % 2**32, seed >> 59
        key += ((word >> turn | word << (32 - turn)) % 2**32).to_bytes(4, "little")
    return Stream(key)


def ternary(stream: Stream, count: int) -> np.ndarray:
    """Returns `floor(3 r / 2^64) - 1` for words r of 64 bits."""
    words = stream.words64(count)
    low, high = words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)
    return ((high * np.uint64(3) + (low * np.uint64(3) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64) - 1


def gaussian(stream: Stream, count: int) -> np.ndarray:
    """Returns errors of standard deviation 3.2. The top bit of a word of 64 bits is the sign; the other bits select from the table."""
    words = stream.words64(count)
    magnitude = np.searchsorted(cumulative(3.2), words & np.uint64(2**63 - 1), "right").astype(np.int64)
    return np.where(words >> np.uint64(63), -magnitude, magnitude)


@functools.cache
def cumulative(std: float) -> np.ndarray:
    """Returns `floor(2^63 P(|x| <= k))` for k below the cut of 9 standard deviations."""
    cut = math.ceil(9 * std)
    weights = [math.exp(-float(k) ** 2 / (2 * std * std)) * (2 if k else 1) for k in range(cut + 1)]
    total, below, table = 0.0, 0.0, []
    for weight in weights:
        total += weight
    for weight in weights[:cut]:
        below += weight / total
        table.append(int(below * 2.0**63))
    return np.array(table, np.uint64)


def uniform(stream: Stream, prime: int, count: int) -> np.ndarray:
    """Returns uniform residues by rejection: words are masked to the bits of the prime, and words not below it are dropped. Words are read
    256 at a time, and the unused rest of the last 256 is lost."""
    mask, accepted = np.uint32(2 ** prime.bit_length() - 1), np.empty(0, np.uint32)
    while len(accepted) < count:
        words = stream.words(256) & mask
        accepted = np.concatenate([accepted, words[words < prime]])
    return accepted[:count].astype(np.uint64)

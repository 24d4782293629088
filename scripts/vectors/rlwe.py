"""RLWE: encryption, evaluation keys, expansion, folds, answers (docs/reference/file-formats.md, RLWE)."""

import numpy as np

import streams
import words
from parameters import Rlwe
from ring import Gadget, Ring


def encrypt(ring: Ring, s: np.ndarray, mask: np.ndarray, message: np.ndarray, stream: streams.Stream) -> np.ndarray:
    """Returns the half b of a ciphertext, as coefficients: `b = -a s + e + message`."""
    errors = ring.residues(streams.gaussian(stream, ring.degree))
    return ring.add(ring.inverse(ring.sub(message, ring.mul(mask, s))), errors)


def centred_symbols(symbols: np.ndarray, bits: int) -> np.ndarray:
    """Returns symbols of `bits` bits as integers in -t/2 .. t/2."""
    signed = symbols.astype(np.int64)
    return signed - (signed >> (bits - 1) << bits)


def external_product(ring: Ring, gadget: Gadget, bottom: np.ndarray, top: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns `[..., half, limb, N]` times an RGSW ciphertext: digits of a times the bottom rows plus digits of b times the top ones."""
    digits = ring.decompose(x, gadget)  # [..., half, digit, limb, N]
    total = np.zeros_like(x)
    for half, rows in enumerate((bottom, top)):
        for k, row in enumerate(rows):
            total = ring.add(total, ring.mul(digits[..., half, k, None, :, :], row))
    return total


def fold_rows(ring: Ring, database: np.ndarray, selectors: np.ndarray) -> np.ndarray:
    """Computes step (6), `sum_row database[row][column] selector_row`, as `[column][half][limb][slot]`. Four products are below 2^64."""
    total = np.zeros((database.shape[1], *selectors.shape[1:]), np.uint64)
    for at in range(0, len(database), 4):
        rows, of_rows = database[at : at + 4, :, None].astype(np.uint64), selectors[at : at + 4, None].astype(np.uint64)
        total += ring.reduce((rows * of_rows).sum(axis=0))
    return ring.reduce(total)


def fold_entries(ring: Ring, gadget: Gadget, entries: np.ndarray, bits: list[np.ndarray]) -> np.ndarray:
    """Computes step (7) on `[entry][plane]`: `x0 + bit (x1 - x0)`, lowest bit first. An entry without a partner is paired with zero."""
    for bit in bits:
        bit = bit.astype(np.uint64)
        bottom, top = bit[: gadget.digits], bit[gadget.digits :]
        if len(entries) % 2:
            entries = np.concatenate([entries, np.zeros_like(entries[:1])])
        x0, x1 = entries[0::2], entries[1::2]
        entries = ring.add(x0, external_product(ring, gadget, bottom, top, ring.sub(x1, x0)))
    return entries[0]


def respond(params: Rlwe, keys, ciphertexts: np.ndarray) -> bytes:
    """Returns the answer: ciphertexts packed in pairs, and the last one alone if their number is odd."""
    ring, pairs, out = params.kept_ring, len(ciphertexts) // 2, b""
    widths = (params.response[0], params.response[1], params.response[1])
    for x, y in zip(ciphertexts[0 : 2 * pairs : 2], ciphertexts[1 : 2 * pairs : 2]):
        total = np.stack([np.zeros_like(x[0]), x[1], y[1]])
        for a, key in zip((x[0], y[0]), keys.pack):
            for digit, row in zip(ring.decompose(a, params.pack), key):
                total = ring.add(total, ring.mul(digit, row))
        out += b"".join(words.pack(ring.switched(half, bits), bits) for half, bits in zip(total, widths))
    return out + single(params, ciphertexts[2 * pairs :])


def single(params: Rlwe, ciphertexts: np.ndarray, widths: tuple[int, int] | None = None) -> bytes:
    """Returns ciphertexts without packing, each half rounded to its width: the set's, or one that a table chooses."""
    ring = params.kept_ring
    halves = [(half, bits) for ciphertext in ciphertexts for half, bits in zip(ciphertext, widths or params.response)]
    return b"".join(words.pack(ring.switched(half, bits), bits) for half, bits in halves)


def answer_bytes(params: Rlwe, plaintexts: int, sharing: int, widths: tuple[int, int] | None = None) -> int:
    """Returns the bytes of an answer in which `sharing` plaintexts share a half a."""
    wide, narrow = widths or params.response
    return params.degree * (-(-plaintexts // sharing) * wide + plaintexts * narrow) // 8


def decrypt(
    params: Rlwe, secrets: list[np.ndarray], answer: bytes, plaintexts: int, symbol_bits: int, widths: tuple[int, int] | None = None
) -> np.ndarray:
    """Returns the symbols of all plaintexts: `round((a s + 2^(a - b) b) 2^symbol_bits / 2^a)`. With several secrets, one plaintext for each
    secret shares a half a."""
    widths, degree = widths or params.response, params.degree
    symbols, at = [], 0

    def read(bits: int) -> np.ndarray:
        nonlocal at
        at += degree * bits // 8
        return words.unpack(answer[at - degree * bits // 8 : at], degree, bits)

    for first in range(0, plaintexts, len(secrets)):
        a = read(widths[0])
        symbols += [decrypt_halves(params, secret, a, read(widths[1]), widths, symbol_bits) for secret in secrets[: plaintexts - first]]
    return np.concatenate(symbols)


def decrypt_halves(params: Rlwe, secret: np.ndarray, a: np.ndarray, b: np.ndarray, widths: tuple[int, int], symbol_bits: int) -> np.ndarray:
    """Returns the symbols of a plaintext from the halves of its ciphertext, of these bits. b may lack coefficients at its end."""
    ring, (wide, narrow) = params.kept_ring, widths
    a = a.astype(np.int64)
    a = ring.forward(ring.residues(a - (a >> (wide - 1) << wide)))
    product = ring.centred(ring.inverse(ring.mul(a, ring.forward(ring.residues(secret)))))[: len(b)]
    phase = product + (b.astype(np.int64) << (wide - narrow)) + (1 << (wide - symbol_bits) >> 1)
    return (phase & (1 << wide) - 1) >> (wide - symbol_bits)

"""`tfhe`: the steps of `onion`, then a rotation to the lane, and a switch to a small ring (docs/explanation/protocols/tfhe.md)."""

from collections.abc import Iterator

import numpy as np

import expansion
import keys
import parameters
import rlwe
import streams
import words
from onion import ROW, white_symbols
from parameters import Rlwe, Switch
from ring import Ring
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    params = parameters.RING[vector.preset]
    ring, bits, switch = params.kept_ring, params.plaintext_bits, params.switch
    slot_symbols = -(-8 * vector.slot_bytes // bits)
    rotations = (ring.degree // slot_symbols).bit_length() - 1
    lanes = 1 << rotations
    entries = -(-vector.blocks // lanes)
    folds = (entries - 1).bit_length()

    # The table, which has one plane: [row][entry].
    count = vector.columns * entries * ring.degree
    symbols = streams.insecure(vector.seeds["database"]).words(count) >> np.uint32(32 - bits)
    yield "symbols", symbols
    plaintexts = symbols.reshape(vector.columns, entries, ring.degree)
    yield "database, packed", packed(plaintexts, bits)
    database = ring.forward(ring.residues(rlwe.centred_symbols(symbols, bits).reshape(plaintexts.shape)))

    # The client's keys and query.
    client = keys.generate(params, bytes.fromhex(vector.seeds["client"]))
    yield "evaluation keys, uploaded", client.upload
    entry, lane = divmod(vector.target, lanes)
    selectors = np.zeros(vector.columns, np.int64)
    selectors[ROW] = 1
    asked = [entry >> fold & 1 for fold in range(folds)] + [lane >> bit & 1 for bit in range(rotations)]
    query, opened = expansion.query(params, client, selectors, asked, streams.insecure(vector.seeds["query"]))
    yield "query", query

    # The server's answer.
    selectors, rgsw = expansion.expand(params, client, opened, vector.columns, len(asked))
    yield "selectors", selectors
    yield "RGSW rows", np.stack(rgsw)
    folded = rlwe.fold_rows(ring, database, selectors)
    yield "folded first dimension", folded
    chosen = rlwe.fold_entries(ring, params.fold, folded, rgsw[:folds])
    yield "chosen ciphertext", chosen.astype(np.uint32)
    for bit, rows in enumerate(rgsw[folds:]):
        turned = ring.mul(chosen, ring.monomial(2 * ring.degree - (1 << bit)))
        chosen = rlwe.fold_entries(ring, params.fold, np.stack([chosen, turned]), [rows])
    yield "rotated ciphertext", chosen.astype(np.uint32)
    polys = switched(params, client.switch, chosen)
    stride = lanes * switch.degree // ring.degree
    sent = [words.pack(poly, switch.response[0]) for poly in polys[:-1]]
    answer = b"".join(sent) + words.pack(polys[-1][::stride][:slot_symbols], switch.response[1])
    yield "answer", answer

    # The client's decryption.
    phases = decrypt(switch, client.small_secrets, polys[:-1], polys[-1][::stride][:slot_symbols], stride, bits)
    white = white_symbols(params, bytes.fromhex(vector.seeds["whitening"]), ROW, entry)[lane::lanes][:slot_symbols]
    yield "slot", words.pack(((phases - white) % (1 << bits)).astype(np.uint64), bits)[: vector.slot_bytes]


def packed(plaintexts: np.ndarray, bits: int) -> bytes:
    """Packs plaintexts, columns first, then rows. Word w of a plaintext has the symbols w, w + W, .., the lowest bits first."""
    of_word = plaintexts.swapaxes(0, 1).reshape(-1, 32 // bits, plaintexts.shape[-1] * bits // 32)
    shifts = np.arange(0, 32, bits, dtype=np.uint32)[:, None]
    return np.bitwise_or.reduce(of_word << shifts, axis=1).astype("<u4").tobytes()


def switched(params: Rlwe, key: np.ndarray, ciphertext: np.ndarray) -> list[np.ndarray]:
    """Switches the coefficients j N / degree of the message to the small ring. Returns the masks, then the body, at their widths."""
    switch, small = params.switch, params.small_ring
    parts = params.degree // switch.degree
    a, b = (rescaled(params.kept_ring, half, small.modulus) for half in ciphertext)
    total = np.zeros((switch.rank + 1, len(small.primes), switch.degree), np.uint64)
    for i in range(parts):
        part = small.residues(a[(parts - i) % parts :: parts].astype(np.int64))
        if i > 0:  # times Y
            part = np.roll(part, 1, axis=-1)
            part[:, 0] = small.sub(np.zeros_like(part), part)[:, 0]
        for digit, row in zip(small.decompose(small.forward(part), switch.gadget), key[i]):
            total = small.add(total, small.mul(digit, row))
    total[-1] = small.add(total[-1], small.forward(small.residues(b[::parts].astype(np.int64))))
    wide, narrow = switch.response
    return [small.switched(poly, wide) for poly in total[:-1]] + [small.switched(total[-1], narrow)]


def rescaled(ring: Ring, half: np.ndarray, modulus: int) -> np.ndarray:
    """Returns `round(x Q_s / Q_1)` modulo Q_s, half up. The product of the moduli has at most 63 bits."""
    x = ring.integers(ring.inverse(half)) * np.uint64(modulus) + np.uint64(ring.modulus // 2)
    return x // np.uint64(ring.modulus) % np.uint64(modulus)


def decrypt(
    switch: Switch, secrets: list[np.ndarray], a: list[np.ndarray], b: np.ndarray, stride: int, symbol_bits: int
) -> np.ndarray:
    """Returns `round((sum a_z t_z + 2^(a - b) b) 2^symbol_bits / 2^a)` for the coefficients of b."""
    wide, narrow = switch.response
    exact = Ring(switch.degree, (2147377153, 2147352577))
    total = np.zeros(switch.degree, np.int64)
    for mask, secret in zip(a, secrets):
        signed = mask.astype(np.int64)
        signed = exact.forward(exact.residues(signed - (signed >> (wide - 1) << wide)))
        total += exact.centred(exact.inverse(exact.mul(signed, exact.forward(exact.residues(secret)))))
    phase = total[::stride][: len(b)] + (b.astype(np.int64) << (wide - narrow)) + (1 << (wide - symbol_bits) >> 1)
    return (phase & (1 << wide) - 1) >> (wide - symbol_bits)

"""`tfhe-privks`: private key switching turns TLWE words into rows, then the steps of `tfhe` (docs/explanation/protocols/tfhe.md)."""

from collections.abc import Iterator

import numpy as np

import expansion
import keys
import parameters
import rlwe
import streams
import words
from keys import Keys
from layouts import tiled_polys
from onion import white_symbols
from parameters import Rlwe
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    params = parameters.RING[vector.preset]
    ring, bits = params.kept_ring, params.plaintext_bits
    slot_symbols = -(-8 * vector.slot_bytes // bits)
    rotations = (ring.degree // slot_symbols).bit_length() - 1
    lanes = 1 << rotations
    entries = -(-vector.blocks // lanes)
    folds = (entries - 1).bit_length()

    # The table, which has one row and one plane.
    symbols = streams.insecure(vector.seeds["database"]).words(entries * ring.degree) >> np.uint32(32 - bits)
    yield "symbols", symbols
    database = ring.forward(ring.residues(rlwe.centred_symbols(symbols, bits).reshape(1, entries, ring.degree)))
    yield "database, tiled", tiled_polys(database)

    # The client's keys and query.
    client = keys.generate(params, bytes.fromhex(vector.seeds["client"]))
    yield "evaluation keys, uploaded", client.upload
    entry, lane = divmod(vector.target, lanes)
    asked = [entry >> fold & 1 for fold in range(folds)] + [lane >> bit & 1 for bit in range(rotations)]
    packed, masks, bodies = query(params, client, [1], asked, streams.insecure(vector.seeds["query"]))
    yield "query", packed

    # The server's answer.
    digits = params.fold.digits
    selectors = switched(params, client.private[1], masks[:1], bodies[:1])
    rgsw = []
    for fold in range(len(asked)):
        at = slice(1 + fold * digits, 1 + (fold + 1) * digits)
        rgsw.append(np.concatenate([switched(params, client.private[top], masks[at], bodies[at], top) for top in (0, 1)]))
    yield "selectors", selectors.astype(np.uint32)
    yield "RGSW rows", np.stack(rgsw).astype(np.uint32)
    folded = rlwe.fold_rows(ring, database, selectors)
    yield "folded first dimension", folded
    chosen = rlwe.fold_entries(ring, params.fold, folded, rgsw[:folds])
    for bit, rows in enumerate(rgsw[folds:]):
        turned = ring.mul(chosen, ring.monomial(2 * ring.degree - (1 << bit)))
        chosen = rlwe.fold_entries(ring, params.fold, np.stack([chosen, turned]), [rows])
    wide, narrow = params.response
    a, b = ring.switched(chosen[0], wide), ring.switched(chosen[1], narrow)[::lanes][:slot_symbols]
    yield "answer", words.pack(a, wide) + words.pack(b, narrow)

    # The client's decryption.
    a = a.astype(np.int64)
    a = ring.forward(ring.residues(a - (a >> (wide - 1) << wide)))
    product = ring.centred(ring.inverse(ring.mul(a, ring.forward(ring.residues(client.secrets[0])))))
    phase = product[::lanes][:slot_symbols] + (b.astype(np.int64) << (wide - narrow)) + (1 << (wide - bits) >> 1)
    white = white_symbols(params, bytes.fromhex(vector.seeds["whitening"]), 0, entry)[lane::lanes][:slot_symbols]
    slot = ((phase & (1 << wide) - 1) >> (wide - bits)) - white
    yield "slot", words.pack((slot % (1 << bits)).astype(np.uint64), bits)[: vector.slot_bytes]


def query(
    params: Rlwe, client: Keys, selectors: list[int], bits: list[int], stream: streams.Stream
) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Returns the query in the form that is sent, and the words that a server reads: masks `[word][entry]`, bodies."""
    n, width, q = params.tlwe.n, params.tlwe.bits, params.kept_ring.modulus
    seed = stream.bytes(16)
    messages = [selector * (q >> params.plaintext_bits) for selector in selectors]
    messages += [bit * params.fold.factor(k) for bit in bits for k in range(params.fold.digits)]
    scaled = np.array([((message << width) + q // 2) // q for message in messages], np.int64)
    of_leaf = [streams.derived("hushdb v1 2026 TLWE query mask", seed, leaf) for leaf in range(len(messages))]
    masks = np.stack([own.words(n).astype(np.int64) >> (32 - width) for own in of_leaf])
    bodies = scaled + streams.gaussian(stream, len(messages)) - masks @ client.tlwe_secret.astype(np.int64)
    bodies %= 1 << width
    return seed + words.pack(bodies.astype(np.uint64), width), masks, bodies


def switched(params: Rlwe, key: np.ndarray, masks: np.ndarray, bodies: np.ndarray, top: int = 1) -> np.ndarray:
    """Returns `sum_i a_i key_i + b x` for centred words, with P dropped; b x is in the half b of top rows and the half a of others."""
    ring, width = params.full_ring, params.tlwe.bits

    def centred(word: int) -> int:
        return int(word) - (int(word) >> (width - 1) << width)

    rows = []
    for mask, body in zip(masks, bodies):
        total = np.zeros_like(key[0])
        for word, row in zip(mask, key):
            total = ring.add(total, ring.mul(row, ring.constant(centred(word))))
        constant = ring.constant(centred(body) * keys.unit_of(params)) * np.ones_like(total[0])
        total[top] = ring.add(total[top], constant)
        rows.append(total)
    return expansion.drop(params, np.stack(rows))

"""`onion`: RLWE selectors pick the row, RGSW bits the entry (docs/explanation/protocols/onion.md)."""

from collections.abc import Iterator

import numpy as np

import expansion
import keys
import parameters
import rlwe
import streams
import words
from layouts import tiled_polys
from vector import Step, Vector

ROW = 3  # the row of the look-up, with coefficient 1


def steps(vector: Vector) -> Iterator[Step]:
    params = parameters.RING[vector.preset]
    ring, bits = params.kept_ring, params.plaintext_bits
    slot_symbols = -(-8 * vector.slot_bytes // bits)
    lanes, planes = max(ring.degree // slot_symbols, 1), -(-slot_symbols // ring.degree)
    entries = -(-vector.blocks // lanes)
    folds = (entries - 1).bit_length()

    # The table. Stored plaintexts include the whitening: [row][plane after plane of entries].
    count = vector.columns * planes * entries * ring.degree
    symbols = streams.insecure(vector.seeds["database"]).words(count) >> np.uint32(32 - bits)
    yield "symbols", symbols
    lifted = rlwe.centred_symbols(symbols, bits).reshape(vector.columns, planes * entries, ring.degree)
    database = ring.forward(ring.residues(lifted))
    yield "database, tiled", tiled_polys(database)

    # The client's keys and query.
    client = keys.generate(params, bytes.fromhex(vector.seeds["client"]))
    yield "evaluation keys, uploaded", client.upload
    entry, lane = divmod(vector.target, lanes)
    selectors = np.zeros(vector.columns, np.int64)
    selectors[ROW] = 1
    of_entry = [entry >> fold & 1 for fold in range(folds)]
    packed, opened = expansion.query(params, client, selectors, of_entry, streams.insecure(vector.seeds["query"]))
    yield "query", packed

    # The server's answer.
    selectors, rgsw = expansion.expand(params, client, opened, vector.columns, folds)
    yield "selectors", selectors
    yield "RGSW rows", np.stack(rgsw)
    folded = rlwe.fold_rows(ring, database, selectors)
    yield "folded first dimension", folded
    by_entry = folded.reshape(planes, entries, *folded.shape[1:]).swapaxes(0, 1)
    answer = rlwe.respond(params, client, rlwe.fold_entries(ring, params.fold, by_entry, rgsw))
    yield "answer", answer

    # The client's decryption.
    decrypted = rlwe.decrypt(params, client.secrets, answer, planes, bits).reshape(planes, ring.degree)
    columns = [plane * entries + entry for plane in range(planes)]
    bare = without_whitening(params, bytes.fromhex(vector.seeds["whitening"]), [(ROW, 1)], columns, decrypted)
    slot = bare.ravel()[lane * slot_symbols :][:slot_symbols].astype(np.uint64)
    yield "slot", words.pack(slot, bits)[: vector.slot_bytes]


def without_whitening(
    params: parameters.Rlwe, seed: bytes, rows: list[tuple[int, int]], columns: list[int], decrypted: np.ndarray
) -> np.ndarray:
    """Returns a decrypted sum of rows without the sum of their whitening. Each plane has one column."""
    white = [sum(c * white_symbols(params, seed, row, column) for row, c in rows) for column in columns]
    return (decrypted - np.stack(white)) % (1 << params.plaintext_bits)


def white_symbols(params: parameters.Rlwe, seed: bytes, row: int, column: int) -> np.ndarray:
    """Returns the whitening of a plaintext: N symbols from its own stream."""
    stream = streams.derived("hushdb v1 2026 whitening", seed, column << 32 | row)
    packed = stream.bytes(params.degree * params.plaintext_bits // 8)
    return words.unpack(packed, params.degree, params.plaintext_bits).astype(np.int64)

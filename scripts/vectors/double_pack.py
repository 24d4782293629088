"""`double-pack`: packed ciphertexts are cut into bytes, folded and packed again (docs/explanation/protocols/double-pack.md)."""

from collections.abc import Iterator

import numpy as np

import lwe
import packing
import rlwe
import words
from layouts import tiled, tiled_polys
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    table = packing.Table(vector)
    ring, entries, (wide, narrow) = table.ring, table.entries, table.params.ring.response
    matrix = lwe.public_matrix(table.params.lwe, vector.public_seed, entries.count, lwe.SECOND)
    yield from table.steps()
    lifted = packing.lift(table, table.hint, entries.plaintexts)
    yield "hint, lifted and tiled", tiled_polys(lifted)

    look_up = packing.LookUp(vector, table, second=(matrix, entries.place(vector.target)[0]))
    yield from look_up.steps()

    packed = packing.pack(table, lifted, look_up.selectors, look_up.folded, entries.plaintexts)
    yield "packed ciphertexts", packed
    switched = [ring.switched(a, wide) | ring.switched(b, narrow) << np.uint64(wide) for a, b in packed]
    # A coefficient is a word of four bytes, each in its own row. An entry is a column.
    by_entry = np.concatenate(switched).astype("<u4").view(np.int8).reshape(entries.count, -1)
    database = np.ascontiguousarray(by_entry.T)
    yield "second database, tiled", tiled(database)
    folded = look_up.fold(database, look_up.second)
    yield "second folded words", folded
    plaintexts = packing.plaintext_rows(ring.degree, len(database))
    lifted = packing.lift(table, lwe.product(database, matrix), plaintexts)
    ciphertexts = packing.pack(table, lifted, look_up.selectors, folded, plaintexts)
    yield "second packed ciphertexts", ciphertexts
    answer = rlwe.respond(table.params.ring, look_up.client, ciphertexts)
    yield "answer", answer

    # The client undoes the second packing, and gets the ciphertexts of the first in the form of a single answer.
    coefficients = packing.decrypted(table, look_up, answer, len(ciphertexts)).view("<u4").astype(np.uint64)
    plane_answers = b""
    for plane in coefficients.reshape(-1, ring.degree):
        plane_answers += words.pack(plane & np.uint64(2**wide - 1), wide) + words.pack(plane >> np.uint64(wide), narrow)
    symbols = rlwe.decrypt(table.params.ring, look_up.client.secrets[:1], plane_answers, entries.planes, 8)
    yield "slot", symbols[look_up.lane * vector.slot_bytes :][: vector.slot_bytes].astype(np.uint8).tobytes()

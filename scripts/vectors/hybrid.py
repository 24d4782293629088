"""`hybrid` and `exppack-s`: answers packed by evaluation keys (docs/explanation/protocols/hybrid.md, exppack-s.md)."""

from collections.abc import Iterator

import numpy as np

import packing
import rlwe
from layouts import tiled_polys
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    table = packing.Table(vector)
    entries, ring = table.entries, table.params.ring
    yield from table.steps()
    lifted = packing.lift(table, table.hint, entries.plaintexts)
    yield "hint, lifted and tiled", tiled_polys(lifted)

    is_folded = vector.protocol == "hybrid"
    look_up = packing.LookUp(vector, table, (entries.count - 1).bit_length() if is_folded else 0)
    yield from look_up.steps()

    ciphertexts = packing.pack(table, lifted, look_up.selectors, look_up.folded, entries.plaintexts)
    yield "packed ciphertexts", ciphertexts
    if is_folded:
        yield "RGSW rows", np.stack(look_up.rgsw)
        by_entry = ciphertexts.reshape(entries.count, entries.planes, *ciphertexts.shape[1:])
        ciphertexts = rlwe.fold_entries(table.ring, ring.fold, by_entry, look_up.rgsw)
        yield "chosen ciphertext", ciphertexts
    answer = rlwe.respond(ring, look_up.client, ciphertexts)
    yield "answer", answer

    # The client reads the bytes of its lane, and in `exppack-s` of its entry.
    decrypted = packing.decrypted(table, look_up, answer, len(ciphertexts))
    entry = 0 if is_folded else look_up.entry * entries.planes * ring.degree
    yield "slot", decrypted[entry + look_up.lane * vector.slot_bytes :][: vector.slot_bytes].tobytes()

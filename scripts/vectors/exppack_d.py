"""`exppack-d`: hint and answer of the first fold are folded a second time, then packed (docs/explanation/protocols/exppack-d.md)."""

from collections.abc import Iterator

import numpy as np

import lwe
import packing
import rlwe
from double import digits, joined
from layouts import tiled, tiled_polys
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    table = packing.Table(vector)
    n, slot = table.params.lwe.n, vector.slot_bytes
    matrix = lwe.public_matrix(table.params.lwe, vector.public_seed, vector.blocks, lwe.SECOND)
    yield from table.steps()
    second = digits(table.hint.reshape(vector.blocks, slot * n))
    yield "second database, tiled", tiled(second)
    second_hint = lwe.product(second, matrix)
    yield "hint of the second fold, words", second_hint
    hint_rows = len(second)
    plaintexts = packing.plaintext_rows(table.ring.degree, hint_rows + 2 * slot)
    padded = np.concatenate([second_hint, np.zeros((2 * slot, n), np.uint64)])  # zeros in place of the answer's rows: there is no query yet
    lifted = packing.lift(table, padded, plaintexts)
    yield "hint, lifted and tiled", tiled_polys(lifted)

    look_up = packing.LookUp(vector, table, second=(matrix, vector.target))
    yield from look_up.steps()

    of_answer = digits(look_up.folded.reshape(vector.blocks, slot))
    yield "database of the answer, tiled", tiled(of_answer)
    folded = np.concatenate([look_up.fold(database, look_up.second) for database in (second, of_answer)])
    yield "folded words of both databases", folded
    hint = np.concatenate([second_hint, lwe.product(of_answer, matrix)])
    lifted = packing.lift(table, hint, plaintexts)
    ciphertexts = packing.pack(table, lifted, look_up.selectors, folded, plaintexts)
    yield "packed ciphertexts", ciphertexts
    answer = rlwe.respond(table.params.ring, look_up.client, ciphertexts)
    yield "answer", answer

    # The client undoes the packing, then the first fold.
    words = joined(packing.decrypted(table, look_up, answer, len(ciphertexts))[: len(folded)])
    hint_words, answer_words = words[: slot * n].reshape(slot, n), words[slot * n :]
    yield "slot", lwe.decrypt(answer_words, hint_words, look_up.secret)

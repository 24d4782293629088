"""`double`: the hint and the answer of the first fold are folded a second time (docs/explanation/protocols/double.md)."""

from collections.abc import Iterator

import numpy as np

import lwe
import streams
import words
from layouts import tiled
from simple import MESSAGE, Table, rounded, scaled
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    query_bits, hint_bits, answer_bits = vector.word_bits
    table = Table(vector)
    n, slot = table.params.n, vector.slot_bytes
    matrix = lwe.public_matrix(table.params, vector.public_seed, vector.blocks, lwe.SECOND)
    yield from table.steps()
    second = digits(table.hint.reshape(vector.blocks, slot * n))
    yield "second database, tiled", tiled(second)
    hint = rounded(lwe.product(second, matrix), hint_bits)
    yield "hint, packed", words.pack(hint.ravel(), hint_bits)

    # Two vectors, each under its own secret.
    stream = streams.insecure(vector.seeds["query"])
    secrets, query = [], []
    for a, message in ((table.matrix, MESSAGE), (matrix, [(vector.target, 1)])):
        secrets.append(streams.ternary(stream, n))
        query.append(rounded(lwe.encrypt(a, secrets[-1], message, stream), query_bits))
    for name, part in zip(("first", "second"), query):
        yield f"query, {name}", words.pack(part, query_bits)
    columns, block = (scaled(part, query_bits) for part in query)

    folded = lwe.product(table.bytes, columns)
    of_answer = digits(folded.reshape(vector.blocks, slot))
    hint_part, answer_part = (rounded(lwe.product(part, block), answer_bits) for part in (second, of_answer))
    online_hint = rounded(lwe.product(of_answer, matrix), hint_bits)
    parts = ((hint_part, answer_bits), (answer_part, answer_bits), (online_hint.ravel(), hint_bits))
    yield "answer", b"".join(words.pack(part, bits) for part, bits in parts)

    # The client undoes the second fold, then the first.
    of_rows = ((hint_part, hint), (answer_part, online_hint))
    undone = [lwe.decrypt(scaled(part, answer_bits), scaled(h, hint_bits), secrets[1]) for part, h in of_rows]
    hint_words, answer_words = (joined(np.frombuffer(octets, np.uint8)) for octets in undone)
    yield "slot", lwe.decrypt(answer_words, hint_words.reshape(slot, n), secrets[0])


def digits(by_block: np.ndarray) -> np.ndarray:
    """Computes step (2): words `[block][i]` rounded to 16 bits, half up. Byte k of word i is row 2 i + k; a block is a column."""
    octets = words.round_up(by_block, 16).astype("<u2").view(np.int8)
    return np.ascontiguousarray(octets.T)


def joined(octets: np.ndarray) -> np.ndarray:
    """Returns words modulo 2^32 whose upper halves are pairs of bytes: the inverse of `digits`."""
    return np.ascontiguousarray(octets).view("<u2").astype(np.uint64) << np.uint64(16)

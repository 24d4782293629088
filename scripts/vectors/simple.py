"""`simple` and `frodo`: one fold over LWE, and a hint that clients download (docs/explanation/protocols/simple.md, frodo.md)."""

from collections.abc import Iterator

import numpy as np

import lwe
import parameters
import streams
import words
from layouts import tiled
from vector import Step, Vector

MESSAGE = [(7, 1), (299, 3)]  # columns and coefficients of the look-up


class Table:
    """A table of random bytes, and the hint of the first fold."""

    def __init__(self, vector: Vector):
        self.params, self.rows = parameters.LWE[vector.preset], vector.blocks * vector.slot_bytes
        self.database = streams.insecure(vector.seeds["database"]).bytes(self.rows * vector.columns)
        self.bytes = np.frombuffer(self.database, np.int8).reshape(self.rows, vector.columns)
        self.matrix = lwe.public_matrix(self.params, vector.public_seed, vector.columns)
        self.hint = lwe.product(self.bytes, self.matrix)

    def steps(self) -> Iterator[Step]:
        yield "database, row-major", self.database
        yield "database, tiled", tiled(self.bytes)
        yield "public matrix, last row", self.matrix[-1]
        yield "hint of the first fold, words", self.hint


def steps(vector: Vector) -> Iterator[Step]:
    query_bits, hint_bits, answer_bits = vector.word_bits
    table = Table(vector)
    yield from table.steps()
    hint = rounded(table.hint, hint_bits)
    yield "hint, packed", words.pack(hint.ravel(), hint_bits)

    stream = streams.insecure(vector.seeds["query"])
    secret = streams.ternary(stream, table.params.n)
    query = rounded(lwe.encrypt(table.matrix, secret, MESSAGE, stream), query_bits)
    yield "query, first", words.pack(query, query_bits)

    folded = lwe.product(table.bytes, scaled(query, query_bits))
    yield "folded words", folded
    answer = rounded(folded, answer_bits)
    yield "answer", words.pack(answer, answer_bits)

    rows = slice(vector.target * vector.slot_bytes, (vector.target + 1) * vector.slot_bytes)
    yield "slot", lwe.decrypt(scaled(answer[rows], answer_bits), scaled(hint[rows], hint_bits), secret)


def rounded(x: np.ndarray, bits: int) -> np.ndarray:
    return words.round_even(x, bits)


def scaled(x: np.ndarray, bits: int) -> np.ndarray:
    """Returns words of `bits` bits, scaled back to words modulo 2^32."""
    return x << np.uint64(32 - bits)

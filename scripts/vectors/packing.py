"""The common part of the protocols that pack by evaluation keys (docs/explanation/protocols/exppack-s.md)."""

from collections.abc import Iterator

import numpy as np

import expansion
import keys
import lwe
import parameters
import rlwe
import streams
import words
from layouts import Entries
from vector import Step, Vector

MESSAGE = [(3, 1), (7, 2)]  # columns and coefficients of the look-up


class Table:
    """A table of random bytes, and its hint."""

    def __init__(self, vector: Vector):
        self.params = parameters.PACK[vector.preset]
        self.ring, self.bits = self.params.ring.kept_ring, self.params.ring.plaintext_bits
        self.entries = Entries(self.ring.degree, vector.blocks, vector.slot_bytes)
        self.database = streams.insecure(vector.seeds["database"]).bytes(self.entries.rows * vector.columns)
        self.bytes = np.frombuffer(self.database, np.int8).reshape(self.entries.rows, vector.columns)
        self.matrix = lwe.public_matrix(self.params.lwe, vector.public_seed, vector.columns)
        self.hint = lwe.product(self.bytes, self.matrix)

    def steps(self) -> Iterator[Step]:
        yield "database, row-major", self.database
        yield "hint of the first fold, words", self.hint


class LookUp:
    """A client's keys and query, and the server's first results from them: the expansion and the fold."""

    def __init__(self, vector: Vector, table: Table, folds: int = 0, second: tuple[np.ndarray, int] | None = None):
        """Makes the keys and the query. `second` is the matrix of the second vector, and the row that it selects."""
        params, self.bits = table.params, vector.word_bits[0]
        self.client = keys.generate(params.ring, bytes.fromhex(vector.seeds["client"]))
        stream = streams.insecure(vector.seeds["query"])
        self.secret = streams.ternary(stream, params.lwe.n)
        self.first = words.round_even(lwe.encrypt(table.matrix, self.secret, MESSAGE, stream), self.bits)
        self.second = np.empty(0, np.uint64)
        if second:
            matrix, row = second
            self.second = words.round_even(lwe.encrypt(matrix, self.secret, [(row, 1)], stream), self.bits)
        self.entry, self.lane = table.entries.place(vector.target)
        bits = [self.entry >> fold & 1 for fold in range(folds)]
        self.packed, opened = expansion.query(params.ring, self.client, self.secret, bits, stream)
        self.selectors, self.rgsw = expansion.expand(params.ring, self.client, opened, params.lwe.n, folds)
        self.folded = self.fold(table.bytes, self.first)

    def fold(self, database: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Computes step (1). Shifts the words of a query back to the top of 32 bits."""
        return lwe.product(database, vector << np.uint64(32 - self.bits))

    def steps(self) -> Iterator[Step]:
        yield "evaluation keys, uploaded", self.client.upload
        yield "query, first", words.pack(self.first, self.bits)
        yield "query, second", words.pack(self.second, self.bits)
        yield "query, packed", self.packed
        yield "selectors", self.selectors
        yield "folded words", self.folded


def lift(table: Table, hint: np.ndarray, plaintexts: list[range]) -> np.ndarray:
    """Returns the lifted hint, `[i][plaintext][limb][slot]`: coefficient j of a polynomial is word i of row j, rounded and centred."""
    ring, rounded = table.ring, rlwe.centred_symbols(words.round_up(hint, table.bits), table.bits)
    padded = np.zeros((hint.shape[1], len(plaintexts), ring.degree), np.int64)
    for plaintext, rows in enumerate(plaintexts):
        padded[:, plaintext, : len(rows)] = rounded[rows.start : rows.stop].T
    lifted = np.empty((*padded.shape[:2], len(ring.primes), ring.degree), np.uint32)
    for at in range(0, len(padded), expansion.NODES):
        lifted[at : at + expansion.NODES] = ring.forward(ring.residues(padded[at : at + expansion.NODES]))
    return lifted


def pack(table: Table, lifted: np.ndarray, selectors: np.ndarray, folded: np.ndarray, plaintexts: list[range]) -> np.ndarray:
    """Computes step (3), `sum_i H_i C_i + (0, Delta G)`, where G is the folded words of a plaintext."""
    ring = table.ring
    packed = rlwe.fold_rows(ring, lifted, selectors)
    g = lift(table, folded[:, None], plaintexts)[0].astype(np.uint64)
    packed[:, 1] = ring.add(packed[:, 1], ring.mul(g, ring.constant(ring.modulus >> table.bits)))
    return packed


def plaintext_rows(degree: int, rows: int) -> list[range]:
    """Returns the rows of each plaintext: a run of rows, cut into pieces of `degree`."""
    return [range(start, min(start + degree, rows)) for start in range(0, rows, degree)]


def decrypted(table: Table, look_up: LookUp, answer: bytes, plaintexts: int) -> np.ndarray:
    """Returns the bytes of the plaintexts of an answer."""
    return rlwe.decrypt(table.params.ring, look_up.client.secrets, answer, plaintexts, 8).astype(np.uint8)

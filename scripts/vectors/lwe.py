"""LWE modulo 2^32: the public matrix, queries, folds and hints (docs/reference/file-formats.md, LWE)."""

import numpy as np

import streams
from parameters import Lwe
from words import LOW

DELTA = 24  # bits by which a message is scaled
FIRST, SECOND = 1, 2  # domains of matrices: for the first and for the second fold


def public_matrix(params: Lwe, seed: bytes, columns: int, domain: int = FIRST) -> np.ndarray:
    """Returns the matrix A of a table's seed, `columns x n`: negacyclic matrices of ring elements, with one stream for every block of
    `degree` columns."""
    n, degree = params.n, params.ring_degree
    context = seed + bytes([domain]) + n.to_bytes(8, "little") + degree.to_bytes(8, "little")
    index = (np.arange(degree)[:, None] - np.arange(degree)) % (2 * degree)  # row c, column i: alpha[c - i]
    blocks = []
    for block in range(-(-columns // degree)):
        stream = streams.derived("hushdb v2 2026 public LWE matrix", context, block)
        alpha = stream.words(n).astype(np.uint64).reshape(-1, degree)
        signed = np.concatenate([alpha, -alpha & LOW], axis=1)
        blocks.append(np.concatenate(signed[:, index], axis=1))
    return np.concatenate(blocks)[:columns]


def encrypt(matrix: np.ndarray, secret: np.ndarray, message: list[tuple[int, int]], stream: streams.Stream) -> np.ndarray:
    """Returns the query `b = -A s + e + Delta message` modulo 2^32."""
    scaled = np.zeros(len(matrix), np.int64)
    for column, coefficient in message:
        scaled[column] += coefficient << DELTA
    errors = streams.gaussian(stream, len(matrix))
    return (errors + scaled - matrix.astype(np.int64) @ secret).astype(np.uint64) & LOW


def product(matrix: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Returns signed bytes times words, modulo 2^32. Sums in doubles are exact: 2^7 2^32 columns <= 2^53."""
    assert matrix.dtype == np.int8 and matrix.shape[1] <= 2**14
    return (matrix.astype(np.float64) @ words.astype(np.float64)).astype(np.int64).astype(np.uint64) & LOW


def decrypt(words: np.ndarray, hint: np.ndarray, secret: np.ndarray) -> bytes:
    """Returns `round((b + <h, s>) / Delta)`, one byte for each row."""
    phase = (words.astype(np.int64) + hint.astype(np.int64) @ secret).astype(np.uint64) & LOW
    return ((phase + np.uint64(1 << (DELTA - 1))) >> np.uint64(DELTA)).astype(np.uint8).tobytes()

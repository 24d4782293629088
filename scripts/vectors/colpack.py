"""`colpack` and `colpack-s`: answers packed by keys of the query (docs/explanation/protocols/colpack.md)."""

from collections.abc import Iterator

import numpy as np

import lwe
import parameters
import rlwe
import streams
import words
from layouts import Entries, tiled
from vector import Step, Vector

MESSAGE = [(7, 1), (299, 3)]  # columns and coefficients of the look-up
ROTATION = 5


def steps(vector: Vector) -> Iterator[Step]:
    params = parameters.COLUMN[vector.preset]
    ring, gadget = params.ring.kept_ring, params.ring.fold
    entries = Entries(ring.degree, vector.blocks, vector.slot_bytes)
    folds = vector.protocol == "colpack" and entries.count > 1

    # The public data: the table, the matrix, the masks, and everything that the build makes from them.
    database = streams.insecure(vector.seeds["database"]).bytes(entries.rows * vector.columns)
    yield "database, row-major", database
    table = np.frombuffer(database, np.int8).reshape(entries.rows, vector.columns)
    matrix = lwe.public_matrix(params.lwe, vector.public_seed, vector.columns)
    yield "public matrix, last row", matrix[-1]
    masks = [mask(ring, vector.public_seed, index) for index in range(4)]
    for name, words_of in zip(("rotation key", "conjugation key"), masks):
        yield f"mask of the {name}", words_of
    for half, words_of in zip("ab", masks[2:]):
        yield f"mask of the RGSW row that meets the digit of {half}", words_of
    hint = lwe.product(table, matrix)
    yield "hint of the first fold, words", hint
    columns, digits, mask_polys = chain(ring, gadget, masks, hint, entries)
    yield "pack columns, tiled", tiled(columns)
    yield "digits of the chain", digits
    if vector.protocol == "colpack":
        yield "masks of the plaintexts", mask_polys
    else:
        downloaded = [ring.switched(a, vector.word_bits[1]) for a in mask_polys]
        yield "masks of the plaintexts as they travel", b"".join(words.pack(a, vector.word_bits[1]) for a in downloaded)

    # The client's query.
    stream = streams.insecure(vector.seeds["query"])
    secret = streams.ternary(stream, ring.degree)
    query = words.round_even(lwe.encrypt(matrix, secret, MESSAGE, stream), vector.word_bits[0])
    yield "query, first", words.pack(query, vector.word_bits[0])
    entry, lane = entries.place(vector.target)
    power = 1 << (entries.count - 1).bit_length()
    exponent = 2 * ring.degree // power * entry if folds else None
    rotation, conjugation, rows = keys(params, ring, masks, secret, exponent, stream)
    yield "query, packed", packed_keys(params, ring, rotation, conjugation, rows)

    # The server's answer.
    folded = lwe.product(table, query << np.uint64(32 - vector.word_bits[0]))
    yield "folded words", folded
    key_words = words_of_key(rotation << np.uint64(64 - params.rotation_bits))
    yield "key words", key_words
    z = ring.forward(ring.unrounded(conjugation, params.conjugation_dropped))
    products = words.switch(ring.integers(ring.inverse(ring.mul(digits, z))), ring.modulus, 32)
    parts = [product[: len(rows)] for product, rows in zip(products, entries.plaintexts)]
    b = (folded + lwe.product(columns.view(np.int8), key_words) + np.concatenate(parts)) & words.LOW
    yield "packed words", b
    if folds:
        bodies = [ring.forward(ring.unrounded(row, params.ring.key_dropped)) for row in rows]
        rgsw = np.stack([np.stack([mask, body]) for mask, body in zip(masks[2:], bodies)])
        yield "RGSW rows", rgsw
        chosen = power_fold(ring, gadget, lifted(ring, b, mask_polys, entries), rgsw, entries, power)
        yield "chosen ciphertexts", chosen
        answer = rlwe.single(params.ring, chosen, vector.word_bits[1:])
    else:
        rounded = words.round_up(b, vector.word_bits[2])
        answer = words.pack(rounded, vector.word_bits[2])
    yield "answer", answer

    # The client's decryption.
    if vector.protocol == "colpack":
        symbols, start = rlwe.decrypt(params.ring, [secret], answer, entries.planes, 8, vector.word_bits[1:]), 0
    else:
        bits = vector.word_bits[1:]
        own = [rounded[rows.start : rows.stop] for rows in entries.plaintexts]
        parts = [rlwe.decrypt_halves(params.ring, secret, a, b, bits, 8) for a, b in zip(downloaded, own)]
        symbols = np.concatenate([np.pad(part, (0, ring.degree - len(part))) for part in parts])
        start = entry * entries.planes * ring.degree
    yield "slot", symbols[start + lane * vector.slot_bytes :][: vector.slot_bytes].astype(np.uint8).tobytes()


def mask(ring, seed: bytes, index: int) -> np.ndarray:
    """Returns a mask from a table's seed. By index: rotation key, conjugation key, row for the digit of a, row for the digit of b."""
    context = seed + ring.degree.to_bytes(8, "little") + b"".join(prime.to_bytes(4, "little") for prime in ring.primes)
    stream = streams.derived("hushdb v2 2026 column packing masks", context, index)
    return np.stack([streams.uniform(stream, prime, ring.degree) for prime in ring.primes])


def chain(ring, gadget, masks, hint, entries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns `chain_hint` of all plaintexts side by side: the pack columns of all rows, and a digit and a mask for every plaintext."""
    degree = ring.degree
    images = Images(ring, hint, entries)
    powers = [pow(ROTATION, k, 2 * degree) for k in range(degree // 2)]
    matrix = np.zeros((len(entries.plaintexts), degree, degree), np.int64)  # [coefficient of the sum][coefficient of y]
    ends = []
    for sign in (1, -1):
        x = images.image(sign * powers[-1])
        for power in reversed(powers[:-1]):
            exponent = sign * power % (2 * degree)
            digit = ring.digits(ring.inverse(x), gadget)[:, 0]
            matrix += multiplied(digit, exponent)
            product = ring.mul(ring.forward(ring.residues(digit)), ring.automorphism(masks[0], exponent))
            x = ring.add(images.image(exponent), product)
        ends.append(x)
    plus, minus = ends
    digits = ring.decompose(minus, gadget)[:, 0]
    mask_polys = ring.add(plus, ring.mul(digits, masks[1]))
    rows = [balanced_bytes(part[: len(rows)]) for part, rows in zip(matrix, entries.plaintexts)]
    return np.concatenate(rows), digits, mask_polys


class Images:
    """`A_e = 1/N sum_i X^i a_i(X^e)`, a_i being row i of a plaintext's hint as `sum_j round(h_ij Q / 2^32) X^-j`."""

    def __init__(self, ring, hint, entries):
        self.ring, degree = ring, ring.degree
        rows = np.stack([np.pad(hint[rows.start : rows.stop], ((0, degree - len(rows)), (0, 0))) for rows in entries.plaintexts])
        h = ring.reduce(np.repeat(words.scale(rows, ring.modulus)[..., None, :], len(ring.primes), axis=-2))
        a = np.concatenate([h[..., :1], ring.sub(np.zeros_like(h[..., 1:]), h[..., :0:-1])], axis=-1)  # X^-j is -X^(N - j)
        by_point = ring.forward(a).transpose(0, 3, 2, 1)  # [plaintext][slot of the point][limb][row i]
        inverse = ring.constant(pow(degree, -1, ring.modulus))
        self.values = ring.mul(ring.forward(by_point), inverse)  # [plaintext][slot of e u][limb][slot of u]

    def image(self, exponent: int) -> np.ndarray:
        """Returns A_e. Its value at slot u, that is at psi^u, is `1/N sum_i psi^(u i) a_i(psi^(e u))`."""
        slots = self.ring.automorphism(np.arange(self.ring.degree), exponent % (2 * self.ring.degree))
        return self.values[:, slots, :, np.arange(self.ring.degree)].transpose(1, 2, 0)


def multiplied(digit: np.ndarray, exponent: int) -> np.ndarray:
    """Returns the share of coefficient c of y in coefficient r of `t y(X^e)`: coefficient r - e c of t."""
    degree = digit.shape[-1]
    places = (np.arange(degree)[:, None] - exponent * np.arange(degree)) % (2 * degree)
    return np.concatenate([digit, -digit], axis=-1)[:, places]


def balanced_bytes(matrix: np.ndarray) -> np.ndarray:
    """Returns entries as four balanced digits in base 256, the lowest first: the bytes of `entry + 0x80808080`, each less 128."""
    assert matrix.min() >= -0x80808080 and matrix.max() <= 0x7F7F7F7F
    return ((matrix + 0x80808080).astype("<u4") ^ np.uint32(0x80808080)).view(np.uint8).reshape(len(matrix), -1)


def keys(params, ring, masks, secret, exponent, stream):
    """Returns the keys of the query: the rotation key as fractions of Q, the others as integers without their low bits."""
    s = ring.forward(ring.residues(secret))
    g = ring.constant(params.ring.fold.factor(0))
    images = [ring.automorphism(s, power) for power in (ROTATION, 2 * ring.degree - 1)]
    if exponent is not None:
        monomial = ring.monomial(exponent)
        images += [ring.mul(monomial, s), monomial]
    bodies = [rlwe.encrypt(ring, s, mask, ring.mul(g, image), stream) for mask, image in zip(masks, images)]
    rotation = words.switch(ring.integers(bodies[0]), ring.modulus, params.rotation_bits)
    conjugation = ring.rounded(bodies[1], params.conjugation_dropped)
    return rotation, conjugation, [ring.rounded(body, params.ring.key_dropped) for body in bodies[2:]]


def packed_keys(params, ring, rotation, conjugation, rows) -> bytes:
    dropped = (params.conjugation_dropped, params.ring.key_dropped, params.ring.key_dropped)
    bits = ring.modulus.bit_length()
    cut = [words.pack(key.rows(), bits - low) for key, low in zip([conjugation, *rows], dropped)]
    return words.pack(rotation, params.rotation_bits) + b"".join(cut)


def words_of_key(fractions: np.ndarray) -> np.ndarray:
    """Returns the words of the rotation key: word 4c + i is `round(256^i f_c / 2^32)` modulo 2^32."""
    scaled = fractions[:, None] << (np.uint64(8) * np.arange(4, dtype=np.uint64))
    return ((scaled >> np.uint64(31)) + np.uint64(1) >> np.uint64(1)).ravel() & words.LOW


def lifted(ring, b, mask_polys, entries) -> np.ndarray:
    """Returns the packed ciphertexts modulo Q: `[plaintext][a, b][limb][slot]`."""
    bodies = []
    for rows in entries.plaintexts:
        part = np.pad(words.scale(b[rows.start : rows.stop], ring.modulus), (0, ring.degree - len(rows)))
        bodies.append(ring.reduce(np.stack([part] * len(ring.primes))))
    return np.stack([mask_polys, ring.forward(np.stack(bodies))], axis=1)


def power_fold(ring, gadget, ciphertexts, rgsw, entries, power) -> np.ndarray:
    """Computes step (7h) for every plane, by Horner's rule on the spectrum."""
    by_entry = ciphertexts.reshape(entries.count, entries.planes, *ciphertexts.shape[1:])
    root, scale = 2 * ring.degree // power, ring.constant(pow(power, -1, ring.modulus))
    spectrum = []
    for k in range(power):
        term = np.zeros_like(by_entry[0])
        for j, entry in enumerate(by_entry):
            factor = ring.mul(ring.monomial(-root * j * k % (2 * ring.degree)), scale)
            term = ring.add(term, ring.mul(factor, entry))
        spectrum.append(term)
    x = spectrum.pop()
    while spectrum:
        x = ring.add(rlwe.external_product(ring, gadget, rgsw[:1], rgsw[1:], x), spectrum.pop())
    return x

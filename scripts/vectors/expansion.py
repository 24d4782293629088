"""Packed queries, and their expansion by evaluation keys (docs/reference/file-formats.md, Expansion)."""

import numpy as np

import rlwe
import streams
import words
from keys import Keys
from parameters import Rlwe
from ring import Gadget, Ring, reversed_bits

NODES = 8  # nodes that are expanded at once: as many as fit into a cache


def leaves(params: Rlwe, rows: int, folds: int) -> int:
    return rows + folds * params.fold.digits


def query(
    params: Rlwe, keys: Keys, selectors: np.ndarray, bits: list[int], stream: streams.Stream
) -> tuple[bytes, np.ndarray]:
    """Returns the packed query in the form that is sent, and as a server reads it: a and b in evaluation form."""
    ring, levels = params.full_ring, len(params.levels)
    count = leaves(params, len(selectors), len(bits))
    seed = stream.bytes(16)
    spread = 1 << levels  # leaf v is coefficients reverse(v) + m 2^h, of which the first has the message
    positions = np.concatenate([np.arange(first, ring.degree, spread) for first in reversed_bits(spread)[:count]])

    # P undoes the drop.
    unit = params.dropped or 1
    delta = unit * (params.kept_ring.modulus >> params.plaintext_bits) % ring.modulus
    factors = [unit * params.fold.factor(k) % ring.modulus for k in range(params.fold.digits)]
    message = np.zeros((len(ring.primes), ring.degree), np.uint64)
    at = positions[:: ring.degree // spread]
    message[:, at[: len(selectors)]] = ring.mul(ring.residues(selectors), ring.constant(delta))
    for place, value in zip(at[len(selectors) :], [bit * factor for bit in bits for factor in factors]):
        message[:, place] = ring.constant(value)[:, 0]

    stream_of_mask = streams.derived("hushdb v1 2026 ring query mask", seed)
    mask = np.stack([streams.uniform(stream_of_mask, prime, ring.degree) for prime in ring.primes])
    s = ring.forward(ring.residues(keys.secrets[0]))
    b = rlwe.encrypt(ring, s, mask, ring.forward(message), stream)
    packed, read = seed, np.zeros_like(b)
    rows = len(selectors) * ring.degree // spread
    for part, dropped in ((positions[:rows], params.selector_dropped), (positions[rows:], params.query_dropped)):
        sent = ring.rounded(b[:, part], dropped)
        packed += words.pack(sent.rows(), ring.modulus.bit_length() - dropped)
        read[:, part] = ring.unrounded(sent, dropped)
    # The server undoes the tree.
    return packed, ring.mul(np.stack([mask, ring.forward(read)]), ring.constant(pow(spread, -1, ring.modulus)))


def expand(params: Rlwe, keys: Keys, opened: np.ndarray, rows: int, folds: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns one selector for each row, and the RGSW rows of each fold, bottom rows first; all modulo Q_1, in words of 32 bits."""
    ring, digits = params.full_ring, params.fold.digits
    nodes = tree(params, keys, opened, leaves(params, rows, folds))
    bits = []
    for fold in range(folds):
        top = nodes[rows + fold * digits :][:digits].astype(np.uint64)
        bottom = key_switch(ring, top[:, 0], keys.square, params.square)
        bottom[:, 0] = ring.add(bottom[:, 0], top[:, 1])
        bits.append(drop(params, np.concatenate([bottom, top])).astype(np.uint32))
    parts = [drop(params, nodes[at : min(at + NODES, rows)].astype(np.uint64)) for at in range(0, rows, NODES)]
    return np.concatenate([part.astype(np.uint32) for part in parts]), bits


def tree(params: Rlwe, keys: Keys, opened: np.ndarray, count: int) -> np.ndarray:
    """Returns the first leaves modulo Q_e. A node has two children, `c + c'` and `(c - c') X^(-2^j)`, in this order."""
    ring, levels = params.full_ring, len(params.levels)
    nodes = opened[None].astype(np.uint32)
    for level, (gadget, key) in enumerate(zip(params.levels, keys.levels)):
        needed = -(-count // (1 << (levels - level - 1)))
        monomial = ring.monomial(2 * ring.degree - (1 << level))
        children = np.empty((len(nodes), 2, *opened.shape), np.uint32)
        for at in range(0, len(nodes), NODES):
            c = nodes[at : at + NODES].astype(np.uint64)
            image = substitute(ring, c, (ring.degree >> level) + 1, key, gadget)
            children[at : at + NODES, 0] = ring.add(c, image)
            children[at : at + NODES, 1] = ring.mul(ring.sub(c, image), monomial)
        nodes = children.reshape(-1, *opened.shape)[:needed]
    return nodes


def substitute(ring: Ring, c: np.ndarray, exponent: int, key: np.ndarray, gadget: Gadget) -> np.ndarray:
    """Computes Subs: substitutes X^exponent for X in a ciphertext, and switches it back to the key s."""
    image = ring.automorphism(c, exponent)
    out = key_switch(ring, image[:, 0], key, gadget)
    out[:, 1] = ring.add(out[:, 1], image[:, 1])
    return out


def key_switch(ring: Ring, a: np.ndarray, key: np.ndarray, gadget: Gadget) -> np.ndarray:
    """Returns `sum_k digit_k(a) key_k` for a of `[..., limb, N]`, with as many halves as a row of the key."""
    digits = ring.decompose(a, gadget)[..., None, :, :]  # [..., digit, half, limb, N]
    total = ring.mul(digits[..., 0, :, :, :], key[0])
    for k in range(1, gadget.digits):
        total = ring.add(total, ring.mul(digits[..., k, :, :, :], key[k]))
    return total


def drop(params: Rlwe, x: np.ndarray) -> np.ndarray:
    """Returns `round(x / P)` modulo Q_1: subtracts the centred residue modulo P, then divides."""
    ring, kept, prime = params.full_ring, params.kept_ring, params.dropped
    if prime is None:
        return x
    rest = ring.plans[-1].inverse(x[..., -1, :]).astype(np.int64)
    rest -= np.where(rest > prime // 2, prime, 0)
    difference = kept.sub(x[..., :-1, :], kept.forward(kept.residues(rest)))
    return kept.mul(difference, kept.constant(pow(prime, -1, kept.modulus)))

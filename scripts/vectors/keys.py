"""A client's secrets and evaluation keys, from one seed (docs/reference/file-formats.md, Evaluation keys)."""

import dataclasses

import numpy as np

import rlwe
import streams
import words
from messages import VERSION, field
from parameters import Rlwe
from ring import Gadget, Ring


@dataclasses.dataclass
class Keys:
    """The secrets that a client keeps, the upload, and the keys that a server reads: rows of polynomials in evaluation form."""

    secrets: list[np.ndarray]  # s, s'
    upload: bytes
    levels: list[np.ndarray]  # of each level `[digit][a, b]`
    square: np.ndarray  # `[digit][a, b]`
    pack: list[np.ndarray]  # of each ciphertext of a pair `[digit][a, b_0, b_1]`
    small_secrets: list[np.ndarray]  # of the small ring, as many as its rank
    switch: np.ndarray | None  # `[part of s][digit][a_0, .., b]`
    tlwe_secret: np.ndarray | None  # of TLWE words
    private: list[np.ndarray]  # for bottom rows, for top rows: `[entry][a, b]`


def generate(params: Rlwe, seed: bytes) -> Keys:
    """Makes all keys from a seed. Keys, masks and errors are made in the order in which the keys are sent."""
    context = params.key_context.encode()
    stream = streams.derived("hushdb v1 2026 ring secrets", seed + context)
    secrets = [streams.ternary(stream, params.degree) for _ in range(2)]
    switch = params.switch
    small_secrets = [streams.ternary(stream, switch.degree) for _ in range(switch.rank)] if switch else []
    tlwe_secret = streams.ternary(stream, params.tlwe.n) if params.tlwe else None
    writer = Writer(params, seed + context)
    full, kept = params.full_ring, params.kept_ring
    s = full.forward(full.residues(secrets[0]))
    levels = []
    for level, gadget in enumerate(params.levels):
        image = full.automorphism(s, (params.degree >> level) + 1)
        levels.append(writer.key_switch_key(full, s, image, gadget))
    square = writer.key_switch_key(full, s, full.mul(s, s), params.square) if params.square.digits else None
    of_pair = [kept.forward(kept.residues(secret)) for secret in secrets]
    pack = [writer.pair_key(kept, of_pair, place, params.pack) for place in range(2)] if params.pack.digits else []
    small_key = writer.switch_key(params, secrets[0], small_secrets) if switch else None
    private = [writer.private_key(params, s, carrier, tlwe_secret) for carrier in (s, np.ones_like(s))] if params.tlwe else []
    upload = writer.upload(params.name)
    return Keys(secrets, upload, levels, square, pack, small_secrets, small_key, tlwe_secret, private)


def unit_of(params: Rlwe) -> int:
    """Returns the value x of a TLWE word modulo Q_e."""
    return (params.full_ring.modulus + (1 << params.tlwe.bits >> 1)) >> params.tlwe.bits


class Writer:
    """A writer of rows of keys. Returns each row as a server reads it: without the low bits of b."""

    def __init__(self, params: Rlwe, material: bytes):
        self.seed = streams.derived("hushdb v1 2026 evaluation key mask seed", material).bytes(32)
        self.errors = streams.derived("hushdb v1 2026 evaluation key errors", material)
        self.dropped, self.rows, self.words = params.key_dropped, 0, []

    def key_switch_key(self, ring: Ring, s: np.ndarray, old: np.ndarray, gadget: Gadget) -> np.ndarray:
        """Returns a key whose row k is `(r, -r s + e + g_k old)`."""
        messages = [ring.mul(old, ring.constant(gadget.factor(k))) for k in range(gadget.digits)]
        return np.stack([self.row(ring, [s], [message]) for message in messages])

    def pair_key(self, ring: Ring, secrets: list[np.ndarray], place: int, gadget: Gadget) -> np.ndarray:
        """Returns a key. Row k of the first ciphertext is `(r, -r s + e + g_k s, -r s' + e')`; the second has `g_k s` in the last half."""
        rows = []
        for k in range(gadget.digits):
            messages = [np.zeros_like(secrets[0])] * 2
            messages[place] = ring.mul(secrets[0], ring.constant(gadget.factor(k)))
            rows.append(self.row(ring, secrets, messages))
        return np.stack(rows)

    def switch_key(self, params: Rlwe, s: np.ndarray, small_secrets: list[np.ndarray]) -> np.ndarray:
        """Returns row k of part i of s: `(r_0, .., -sum r_z t_z + e + g_k s_i)`, with all bits."""
        ring, gadget, parts = params.small_ring, params.switch.gadget, params.degree // params.switch.degree
        small = [ring.forward(ring.residues(secret)) for secret in small_secrets]
        return np.stack([self.switch_rows(ring, ring.forward(ring.residues(s[i::parts])), small, gadget) for i in range(parts)])

    def switch_rows(self, ring: Ring, old: np.ndarray, small: list[np.ndarray], gadget: Gadget) -> np.ndarray:
        rows = []
        for k in range(gadget.digits):
            masks, message = [], ring.mul(old, ring.constant(gadget.factor(k)))
            for t in small:
                masks.append(self.mask(ring))
                if len(masks) < len(small):
                    message = ring.sub(message, ring.mul(masks[-1], t))
            b = rlwe.encrypt(ring, small[-1], masks[-1], message, self.errors)
            self.words.append(words.pack(ring.integers(b), ring.modulus.bit_length()))
            rows.append(np.stack(masks + [ring.forward(b)]))
        return np.stack(rows)

    def private_key(self, params: Rlwe, s: np.ndarray, carrier: np.ndarray, entries: np.ndarray) -> np.ndarray:
        """Returns the row of entry i of t: `(r, -r s + e + x t_i carrier)`, x = round(Q_e / 2^bits)."""
        ring, unit = params.full_ring, unit_of(params)
        return np.stack([self.row(ring, [s], [ring.mul(carrier, ring.constant(unit * int(t)))]) for t in entries])

    def row(self, ring: Ring, secrets: list[np.ndarray], messages: list[np.ndarray]) -> np.ndarray:
        """Returns a mask, and a body for every secret."""
        mask = self.mask(ring)
        return np.stack([mask] + [self.body(ring, s, mask, message) for s, message in zip(secrets, messages)])

    def mask(self, ring: Ring) -> np.ndarray:
        """Returns the next mask, from its own stream. Streams are numbered from 1."""
        self.rows += 1
        stream = streams.derived("hushdb v1 2026 evaluation key masks", self.seed, self.rows)
        return np.stack([streams.uniform(stream, prime, ring.degree) for prime in ring.primes])

    def body(self, ring: Ring, s: np.ndarray, mask: np.ndarray, message: np.ndarray) -> np.ndarray:
        rounded = ring.rounded(rlwe.encrypt(ring, s, mask, message, self.errors), self.dropped)
        self.words.append(words.pack(rounded.rows(), ring.modulus.bit_length() - self.dropped))
        return ring.forward(ring.unrounded(rounded, self.dropped))

    def upload(self, name: str) -> bytes:
        """Returns the rows so far as a message `hush.v1.EvaluationKeys`."""
        return VERSION + field(2, name.encode()) + field(3, self.seed) + field(4, b"".join(self.words))

"""Words on the wire: packed bits, roundings, and integers wider than 64 bits (docs/reference/file-formats.md, Words)."""

import numpy as np

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def modulo(x: np.ndarray, prime: int) -> np.ndarray:
    """Returns `x mod prime` in 0 .. prime, also for signed words. numpy divides by a scalar much faster than it takes remainders."""
    prime = x.dtype.type(prime)
    return x - x // prime * prime


def pack(words: np.ndarray, bits: int) -> bytes:
    """Returns a bit string with word i at the bits `i bits ..`. Words of more than 32 bits are rows of limbs, the lowest first."""
    limbs = words if words.ndim == 2 else np.stack([words & LOW, words >> HALF], axis=1)
    octets = np.ascontiguousarray(limbs, "<u4").view(np.uint8)
    taken = np.unpackbits(octets, axis=1, count=bits, bitorder="little")
    return np.packbits(taken, bitorder="little").tobytes()


def unpack(packed: bytes, count: int, bits: int) -> np.ndarray:
    """Returns the `count` words of `bits` <= 64 bits in a bit string."""
    taken = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits, bitorder="little").reshape(count, bits)
    octets = np.packbits(np.pad(taken, ((0, 0), (0, 64 - bits))), axis=1, bitorder="little")
    return octets.view("<u8").ravel().astype(np.uint64)


def round_even(words: np.ndarray, bits: int) -> np.ndarray:
    """Rounds words modulo 2^32 to their top bits, half to even. For queries, and for the hint and the answer of `simple`."""
    if bits == 32:
        return words & LOW
    dropped = np.uint64(32 - bits)
    below_half = np.uint64((1 << (31 - bits)) - 1) + (words >> dropped & np.uint64(1))
    return ((words + below_half) & LOW) >> dropped


def round_up(words: np.ndarray, bits: int) -> np.ndarray:
    """Rounds words modulo 2^32 to their top bits, half up. For words that are packed into ciphertexts."""
    return ((words + np.uint64(1 << (31 - bits))) & LOW) >> np.uint64(32 - bits)


def switch(values: np.ndarray, modulus: int, bits: int) -> np.ndarray:
    """Returns `round(x 2^bits / modulus)` modulo 2^bits, for x below a modulus of at most 62 bits. Long division, one bit in each step."""
    rest, quotient, modulus = values.copy(), np.zeros_like(values), np.uint64(modulus)
    for _ in range(bits):
        rest <<= np.uint64(1)
        fits = rest >= modulus
        rest -= fits * modulus
        quotient = quotient << np.uint64(1) | fits
    return (quotient + (rest >= modulus - modulus // np.uint64(2))) & np.uint64(2**bits - 1)


def scale(words: np.ndarray, modulus: int) -> np.ndarray:
    """Returns `round(h modulus / 2^32)` for words modulo 2^32, half up: a lift from 2^32 to a modulus of at most 62 bits."""
    low, high = np.uint64(modulus & 0xFFFFFFFF), np.uint64(modulus >> 32)
    return words * high + (words * low + np.uint64(1 << 31) >> HALF)


class Wide:
    """Integers modulo 2^128 as four arrays of limbs of 32 bits, the lowest first. No sum in the methods exceeds 64 bits:
    (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1."""

    LIMBS = 4

    def __init__(self, limbs: list[np.ndarray]):
        self.limbs = limbs

    @classmethod
    def zeros(cls, like: np.ndarray) -> "Wide":
        return cls([np.zeros(like.shape, np.uint64) for _ in range(cls.LIMBS)])

    def plus(self, factor: np.ndarray | int, constant: int) -> "Wide":
        """Returns `self + factor * constant`. The factor is below 2^32."""
        out, carry, factor = [], np.uint64(0), np.asarray(factor, np.uint64)
        for index, limb in enumerate(self.limbs):
            total = factor * np.uint64(constant >> 32 * index & 0xFFFFFFFF) + limb + carry
            out.append(total & LOW)
            carry = total >> HALF
        return Wide(out)

    def above(self, constant: int) -> np.ndarray:
        """Returns 1 for integers above `constant`, else 0: the carry out of `self + 2^128 - 1 - constant`."""
        carry = np.uint64(0)
        for index, limb in enumerate(self.limbs):
            carry = (limb + np.uint64(~constant >> 32 * index & 0xFFFFFFFF) + carry) >> HALF
        return carry

    def bits(self, first: int, count: int) -> np.ndarray:
        """Returns the bits `first ..` as words of `count` <= 32 bits."""
        limb, shift = divmod(first, 32)
        pair = self.limbs[limb] | (self.limbs[limb + 1] << HALF if limb + 1 < self.LIMBS else np.uint64(0))
        return pair >> np.uint64(shift) & np.uint64(2**count - 1)

    def shifted(self, dropped: int) -> "Wide":
        """Returns the integers without their low `dropped` bits."""
        firsts = [dropped + 32 * index for index in range(self.LIMBS)]
        return Wide([self.bits(at, 32) if at < 128 else np.zeros_like(self.limbs[0]) for at in firsts])

    def modulo(self, prime: int) -> np.ndarray:
        total = np.zeros_like(self.limbs[0])
        for index, limb in enumerate(self.limbs):
            total += modulo(limb * np.uint64(pow(2, 32 * index, prime)), prime)
        return modulo(total, prime)

    def rows(self) -> np.ndarray:
        """Returns a row of limbs for every integer, as `pack` takes them."""
        return np.stack([limb.ravel() for limb in self.limbs], axis=1)

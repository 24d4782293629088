"""The ring modulo X^N + 1 and a product of primes: transforms, automorphisms, digits (docs/reference/file-formats.md, Rings).

A polynomial is an array `[..., limb, N]` of residues in uint64, of coefficients or in evaluation form.
"""

import dataclasses
import functools
import math

import numpy as np

from words import Wide, modulo, switch

COLUMNS = 32  # polynomials that are transformed at once: as many as fit into a cache


@dataclasses.dataclass(frozen=True)
class Gadget:
    """A decomposition into balanced digits of `width` bits. The low `dropped` bits of a value are rounded away."""

    width: int
    digits: int
    dropped: int

    def factor(self, k: int) -> int:
        """Returns the weight g_k of digit k."""
        return 1 << (self.dropped + self.width * k)

    @property
    def offset(self) -> int:
        """Returns the offset that makes all digits non-negative: half a unit for the rounding, half a base for every digit."""
        return (1 << self.dropped >> 1) + sum(self.factor(k) << (self.width - 1) for k in range(self.digits))


class Ring:
    def __init__(self, degree: int, primes: tuple[int, ...]):
        self.degree, self.primes, self.modulus = degree, primes, math.prod(primes)
        self.plans = [Plan(degree, prime) for prime in primes]
        self.column = np.array(primes, np.uint64)[:, None]

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Returns the evaluation form of coefficients."""
        return np.stack([plan.forward(x[..., limb, :]) for limb, plan in enumerate(self.plans)], axis=-2)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """Returns the coefficients of an evaluation form."""
        return np.stack([plan.inverse(x[..., limb, :]) for limb, plan in enumerate(self.plans)], axis=-2)

    def residues(self, integers: np.ndarray) -> np.ndarray:
        """Returns signed integers of at most 63 bits as a polynomial."""
        return np.stack([modulo(integers, prime).astype(np.uint64) for prime in self.primes], axis=-2)

    def constant(self, value: int) -> np.ndarray:
        """Returns the residues of an integer, as a factor of polynomials."""
        return np.array([[value % prime] for prime in self.primes], np.uint64)

    def add(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        total = x + y
        return np.minimum(total, total - self.column)

    def sub(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        difference = x - y
        return np.minimum(difference, difference + self.column)

    def mul(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.reduce(x * y)

    def reduce(self, x: np.ndarray) -> np.ndarray:
        """Returns the residues of words below 2^64."""
        return np.stack([modulo(x[..., limb, :], prime) for limb, prime in enumerate(self.primes)], axis=-2)

    def automorphism(self, x: np.ndarray, exponent: int) -> np.ndarray:
        """Substitutes X^exponent for X, in evaluation form: a(X^k) at psi^e is a at psi^(k e)."""
        exponents = slot_exponents(self.degree)
        return x[..., slots_of(self.degree)[exponents * exponent % (2 * self.degree)]]

    def monomial(self, exponent: int) -> np.ndarray:
        """Returns X^exponent in evaluation form, for 0 <= exponent < 2N."""
        coefficients = np.zeros(self.degree, np.int64)
        coefficients[exponent % self.degree] = 1 if exponent < self.degree else -1
        return self.forward(self.residues(coefficients))

    def mixed_radix(self, x: np.ndarray) -> list[np.ndarray]:
        """Returns the digits v_j of coefficients `sum_j v_j p_0 .. p_(j-1)` (Garner)."""
        digits = []
        for limb, prime in enumerate(self.primes):
            known, radix = np.zeros_like(x[..., limb, :]), 1
            for digit, below in zip(digits, self.primes):
                known = modulo(known + digit * np.uint64(radix), prime)
                radix = radix * below % prime
            difference = modulo(x[..., limb, :] + np.uint64(prime) - known, prime)
            digits.append(modulo(difference * np.uint64(pow(radix, -1, prime)), prime))
        return digits

    def wide(self, x: np.ndarray) -> Wide:
        """Returns coefficients as integers in 0 .. Q."""
        total, radix = Wide.zeros(x[..., 0, :]), 1
        for digit, prime in zip(self.mixed_radix(x), self.primes):
            total, radix = total.plus(digit, radix), radix * prime
        return total

    def integers(self, x: np.ndarray) -> np.ndarray:
        """Returns coefficients as integers in 0 .. Q, for Q of at most 62 bits, in uint64."""
        assert self.modulus < 2**62
        total, radix = np.zeros_like(x[..., 0, :]), 1
        for digit, prime in zip(self.mixed_radix(x), self.primes):
            total, radix = total + digit * np.uint64(radix), radix * prime
        return total

    def centred(self, x: np.ndarray) -> np.ndarray:
        """Returns coefficients as integers in -Q/2 .. Q/2, for Q of at most 62 bits."""
        integers = self.integers(x).astype(np.int64)
        return integers - np.where(integers > self.modulus // 2, self.modulus, 0)

    def decompose(self, x: np.ndarray, gadget: Gadget) -> np.ndarray:
        """Returns the balanced digits of the centred coefficients of x, in evaluation form: `[..., digit, limb, N]`."""
        return self.forward(self.residues(self.digits(self.inverse(x), gadget)))

    def digits(self, coefficients: np.ndarray, gadget: Gadget) -> np.ndarray:
        """Returns the balanced digits as signed integers `[..., digit, N]`. Digit k is `bits of (x + offset) - base / 2`."""
        value = self.wide(coefficients)
        centred = value.plus(value.above(self.modulus // 2), 2**128 - self.modulus)
        shifted = centred.plus(1, gadget.offset)
        firsts = [gadget.dropped + gadget.width * k for k in range(gadget.digits)]
        digits = [shifted.bits(first, gadget.width).astype(np.int64) - (1 << (gadget.width - 1)) for first in firsts]
        return np.stack(digits, axis=-2)

    def rounded(self, coefficients: np.ndarray, dropped: int) -> Wide:
        """Returns coefficients without their low bits, rounded half up: the form of keys and packed queries on the wire."""
        return self.wide(coefficients).plus(1, 1 << dropped >> 1).shifted(dropped)

    def unrounded(self, words: Wide, dropped: int) -> np.ndarray:
        """Returns the values that a server reads: the words of coefficients, times 2^dropped."""
        residues = [modulo(words.modulo(prime) * np.uint64(2**dropped % prime), prime) for prime in self.primes]
        return np.stack(residues, axis=-2)

    def switched(self, x: np.ndarray, bits: int) -> np.ndarray:
        """Returns `round(c 2^bits / Q)` for the coefficients c of x, which is in evaluation form."""
        return switch(self.integers(self.inverse(x)), self.modulus, bits)


class Plan:
    """The transform modulo one prime below 2^31: butterflies on words below 2p, products by Shoup's quotients."""

    def __init__(self, degree: int, prime: int):
        assert prime < 2**31 and prime % (2 * degree) == 1
        self.degree, self.prime = degree, prime
        psi = primitive_root(prime, 2 * degree)
        self.factors = [self.companions(root) for root in (psi, pow(psi, -1, prime))]
        self.scale = pow(degree, -1, prime)

    def companions(self, root: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the powers of a root in bit-reversed order, and `floor(power 2^32 / p)`."""
        powers = [1]
        for _ in range(self.degree - 1):
            powers.append(powers[-1] * root % self.prime)
        ordered = np.array(powers, np.uint64)[reversed_bits(self.degree)]
        return ordered, (ordered << np.uint64(32)) // np.uint64(self.prime)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.in_columns(x, self.forward_columns)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return self.in_columns(x, self.inverse_columns)

    def in_columns(self, x: np.ndarray, transform) -> np.ndarray:
        """Applies `transform` to `COLUMNS` polynomials at a time, side by side, so that every operation has long rows."""
        flat = x.reshape(-1, self.degree)
        out = np.empty_like(flat)
        for first in range(0, len(flat), COLUMNS):
            columns = flat[first : first + COLUMNS].T.copy()
            transform(columns)
            out[first : first + COLUMNS] = columns.T
        return out.reshape(x.shape)

    def forward_columns(self, x: np.ndarray) -> None:
        prime, double = np.uint64(self.prime), np.uint64(2 * self.prime)
        blocks = 1
        while blocks < self.degree:
            low, high, *factor = self.stage(x, blocks, 0)
            product = times(high, *factor, prime)
            np.subtract(low, product, out=high)
            np.minimum(high, high + double, out=high)
            low += product
            np.minimum(low, low - double, out=low)
            blocks *= 2
        np.minimum(x, x - prime, out=x)

    def inverse_columns(self, x: np.ndarray) -> None:
        prime, double = np.uint64(self.prime), np.uint64(2 * self.prime)
        blocks = self.degree // 2
        while blocks:
            low, high, *factor = self.stage(x, blocks, 1)
            difference = low - high
            np.minimum(difference, difference + double, out=difference)
            low += high
            np.minimum(low, low - double, out=low)
            high[...] = times(difference, *factor, prime)
            blocks //= 2
        x *= np.uint64(self.scale)
        x -= x // prime * prime

    def stage(self, x: np.ndarray, blocks: int, direction: int) -> tuple[np.ndarray, ...]:
        """Returns the halves of the blocks of a stage, and the factors of the blocks with their quotients."""
        halves = x.reshape(blocks, 2, -1)
        powers, quotients = self.factors[direction]
        return halves[:, 0], halves[:, 1], powers[blocks : 2 * blocks, None], quotients[blocks : 2 * blocks, None]


def times(x: np.ndarray, factor: np.ndarray, quotient: np.ndarray, prime: np.uint64) -> np.ndarray:
    """Returns `x factor` modulo p, below 2p, for any x below 2^32 (Harvey, section 3)."""
    estimate = x * quotient
    estimate >>= np.uint64(32)
    estimate *= prime
    product = x * factor
    product -= estimate
    return product


def primitive_root(prime: int, order: int) -> int:
    """Returns psi: the first of 2^((p-1)/order), 3^((p-1)/order), .. that has this order, a power of two."""
    roots = (pow(base, (prime - 1) // order, prime) for base in range(2, prime))
    return next(root for root in roots if pow(root, order // 2, prime) == prime - 1)


@functools.cache
def reversed_bits(size: int) -> np.ndarray:
    bits = size.bit_length() - 1
    return np.array([int(format(i, f"0{bits}b")[::-1], 2) if bits else 0 for i in range(size)])


@functools.cache
def slot_exponents(degree: int) -> np.ndarray:
    """Returns the exponents of all slots: slot i holds the value at psi^e, e = 2 reverse(i) + 1."""
    return 2 * reversed_bits(degree) + 1


@functools.cache
def slots_of(degree: int) -> np.ndarray:
    """Returns the slots of all odd exponents below 2N, by exponent."""
    slots = np.zeros(2 * degree, np.int64)
    slots[slot_exponents(degree)] = np.arange(degree)
    return slots

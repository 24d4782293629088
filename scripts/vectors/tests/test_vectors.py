"""Tests that the comparison finds faults that are planted in the known answers, in the recomputation, and in the arithmetic."""

import copy
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import environment

environment.enter()

import numpy as np

import colpack
import parameters
import protocols
import streams
import words
from ring import Gadget, Ring
from vector import Differs, Vector, as_bytes

PRIMES = (2147377153, 2147352577, 2147295233)


def vector(protocol: str) -> Vector:
    return Vector(protocols.FOLDER / f"{protocol}.json")


class Planted(unittest.TestCase):
    """Faults in protocols that are quick to recompute. All protocols share one comparison."""

    @classmethod
    def setUpClass(cls):
        of = {protocol: vector(protocol) for protocol in ("simple", "colpack-s", "exppack-s", "double-pack")}
        cls.known = {protocol: (known, list(protocols.STEPS[protocol](known))) for protocol, known in of.items()}

    def check_differs(self, known: Vector, steps: list, name: str):
        with self.assertRaises(Differs) as caught:
            known.compare(steps)
        self.assertTrue(str(caught.exception).startswith(f"{name}: "), caught.exception)

    def test_nothing_planted(self):
        for known, steps in self.known.values():
            self.assertEqual(known.compare(steps), [entry["name"] for entry in known.facts["intermediates"]])

    def test_in_every_entry_of_the_file(self):
        for known, steps in self.known.values():
            for index, entry in enumerate(known.facts["intermediates"]):
                planted = {"blake3": flipped(entry["blake3"]), "head": flipped(entry["head"]), "bytes": entry["bytes"] + 4}
                for field, value in planted.items():
                    if value != entry[field]:
                        changed = copy.deepcopy(known)
                        changed.facts["intermediates"][index][field] = value
                        self.check_differs(changed, steps, entry["name"])

    def test_in_every_step(self):
        """Changes one bit of the last word, which is mostly not among the first bytes in the file."""
        for known, steps in self.known.values():
            for index, (name, value) in enumerate(steps):
                octets = bytearray(as_bytes(value))
                if octets:
                    octets[-1] ^= 1
                    self.check_differs(known, [*steps[:index], (name, bytes(octets)), *steps[index + 1 :]], name)

    def test_entries_that_are_missing_or_new(self):
        known, steps = self.known["simple"]
        self.check_differs(known, steps[:-1], "slot")
        self.check_differs(known, steps[1:], steps[1][0])
        self.check_differs(known, [*steps, ("one more", b"")], "one more")

    def test_in_an_input(self):
        first_of = {
            "database": "database, row-major",
            "public": "hint of the first fold, words",
            "query": "query, first",
            "client": "evaluation keys, uploaded",
        }
        for seed, first in first_of.items():
            known = vector("exppack-s")
            value = known.seeds[seed]
            known.seeds[seed] = value + 1 if isinstance(value, int) else flipped(value)
            self.check_differs(known, protocols.STEPS["exppack-s"](known), first)

    def test_the_slot_is_that_of_the_table(self):
        """Checks that a look-up adds column 7 and 3 times column 299, byte by byte."""
        known, steps = self.known["colpack-s"]
        table = np.frombuffer(steps[0][1], np.uint8).reshape(-1, known.columns)
        rows = slice(known.target * known.slot_bytes, None)
        self.assertEqual((table[rows, 7] + 3 * table[rows, 299]).tobytes(), steps[-1][1])

    def test_a_difference_is_reported(self):
        """Checks the result from which the exit code follows."""
        text = (protocols.FOLDER / "simple.json").read_text()
        of_slot = vector("simple").facts["intermediates"][-1]["blake3"]
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            path = folder / "simple.json"
            path.write_text(text)
            self.assertTrue(protocols.report("simple", folder)[0])
            path.write_text(text.replace(of_slot, flipped(of_slot)))
            self.assertEqual(protocols.report("simple", folder), (False, "simple: differs: slot: another hash; the first 5 bytes are equal"))

    def test_every_file_is_recomputed(self):
        self.assertEqual(protocols.forgotten(), [])


def flipped(text: str) -> str:
    """Returns a text with one bit of its last hexadecimal digit changed."""
    return text[:-1] + f"{int(text[-1], 16) ^ 1:x}" if text else text


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(1)

    def integers(self, ring: Ring, x: np.ndarray) -> list[int]:
        """Computes integers from residues, one by one, by the Chinese remainder theorem."""
        units = [ring.modulus // p * pow(ring.modulus // p, -1, p) for p in ring.primes]
        return [sum(int(residue) * unit for residue, unit in zip(column, units)) % ring.modulus for column in x.T]

    def polynomial(self, ring: Ring) -> np.ndarray:
        x = self.random.integers(0, 2**62, (len(ring.primes), ring.degree)).astype(np.uint64) % ring.column
        x[:, :2] = [[0, prime - 1] for prime in ring.primes]
        return x

    def test_chacha20(self):
        """Checks the first block under the key of zeros, and streams that are read in pieces."""
        self.assertEqual(streams.Stream(bytes(32)).bytes(8).hex(), "76b8e0ada0f13d90")
        whole, pieces = streams.insecure(3).words(40_000), streams.insecure(3)
        self.assertTrue(np.array_equal(whole, np.concatenate([pieces.words(n) for n in (1, 2, 20_000, 19_997)])))

    def test_masks_of_the_default_set(self):
        ring = parameters.COLUMN["COLPACK_N2048_Q52"].ring.kept_ring
        first = [int(colpack.mask(ring, bytes([1]) * 32, index)[0, 0]) for index in range(4)]
        self.assertEqual(first, [29994785, 37242627, 14634316, 54569042])

    def test_products_are_negacyclic(self):
        ring = Ring(16, PRIMES)
        x, y = self.polynomial(ring), self.polynomial(ring)
        product = ring.inverse(ring.mul(ring.forward(x), ring.forward(y)))
        a, b = self.integers(ring, x), self.integers(ring, y)
        expected = [0] * 16
        for i in range(16):
            for j in range(16):
                expected[(i + j) % 16] += a[i] * b[j] * (1 if i + j < 16 else -1)
        self.assertEqual(self.integers(ring, product), [value % ring.modulus for value in expected])

    def test_slots_are_odd_powers_of_the_root(self):
        ring, prime = Ring(8, PRIMES[:1]), PRIMES[0]
        non_residue = next(base for base in range(2, 99) if pow(base, (prime - 1) // 2, prime) != 1)
        psi, x = pow(non_residue, (prime - 1) // 16, prime), self.polynomial(ring)
        for slot, exponent in enumerate((1, 9, 5, 13, 3, 11, 7, 15)):
            point = pow(psi, exponent, prime)
            value = sum(int(c) * pow(point, i, prime) for i, c in enumerate(x[0])) % prime
            self.assertEqual(int(ring.forward(x)[0, slot]), value)

    def test_digits_add_up(self):
        ring, gadget = Ring(64, PRIMES), Gadget(19, 4, 18)
        x = self.polynomial(ring)
        digits = ring.digits(x, gadget)
        self.assertTrue((-(2**18) <= digits).all() and (digits < 2**18).all())
        for place, value in enumerate(self.integers(ring, x)):
            centred = value - ring.modulus if value > ring.modulus // 2 else value
            sum_of = sum(int(digits[k, place]) * gadget.factor(k) for k in range(4))
            self.assertLessEqual(abs(centred - sum_of), 2**17)

    def test_roundings(self):
        ring = Ring(64, PRIMES[:2])
        x = self.polynomial(ring)
        for bits in (12, 20, 32, 46):
            expected = [(2 * (v << bits) // ring.modulus + 1) // 2 % 2**bits for v in self.integers(ring, x)]
            self.assertEqual(words.switch(ring.integers(x), ring.modulus, bits).tolist(), expected)
        rounded = [int(word) for word in ring.rounded(x, 10).rows()[:, :2] @ np.array([1, 2**32], np.uint64)]
        self.assertEqual(rounded, [v + 512 >> 10 for v in self.integers(ring, x)])
        halves = np.array([0x8000, 0x18000, 0x18001, 0xFFFF8000], np.uint64)
        self.assertEqual(words.round_even(halves, 16).tolist(), [0, 2, 2, 0])
        self.assertEqual(words.round_up(halves, 16).tolist(), [1, 2, 2, 0])

    def test_words_are_packed_bit_after_bit(self):
        for bits in (1, 7, 12, 26, 32, 46):
            some = self.random.integers(0, 2**bits, 9).astype(np.uint64)
            whole = sum(int(word) << bits * i for i, word in enumerate(some))
            self.assertEqual(words.pack(some, bits), whole.to_bytes(-(-9 * bits // 8), "little"))
            self.assertEqual(words.unpack(words.pack(some, bits), 9, bits).tolist(), some.tolist())


if __name__ == "__main__":
    unittest.main()

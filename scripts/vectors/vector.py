"""A file of known answers, and the comparison with it."""

import json
import pathlib
from collections.abc import Iterable

import blake3
import numpy as np

Step = tuple[str, bytes | np.ndarray]  # the name of an entry, and its bytes or words of 32 bits


class Differs(Exception):
    """The two implementations differ. The text names the first difference."""


class Vector:
    def __init__(self, path: pathlib.Path):
        self.facts = json.loads(path.read_text())
        self.protocol: str = self.facts["protocol"]
        self.preset: str = self.facts["preset"]
        self.columns: int = self.facts["columns"]
        self.blocks: int = self.facts["blocks"]
        self.slot_bytes: int = self.facts["slot_bytes"]
        self.seeds: dict = self.facts["seeds"]
        self.word_bits: list[int] = self.facts.get("word_bits", [])

    @property
    def public_seed(self) -> bytes:
        """The seed of matrices and masks. In a real table, it is the hash of the geometry."""
        return bytes.fromhex(self.seeds["public"])

    @property
    def target(self) -> int:
        """The block of the look-up, which is the last one."""
        return self.blocks - 1

    def compare(self, steps: Iterable[Step]) -> list[str]:
        """Compares every entry with its step, and returns the names of the entries. Raises `Differs` at the first difference."""
        entries = self.facts["intermediates"]
        names = []
        for name, value in steps:
            if len(names) == len(entries) or entries[len(names)]["name"] != name:
                raise Differs(f"{name}: no such entry at place {len(names)} of the file")
            check(entries[len(names)], as_bytes(value))
            names.append(name)
        if len(names) < len(entries):
            raise Differs(f"{entries[len(names)]['name']}: in the file, but not recomputed")
        return names


def as_bytes(value: bytes | np.ndarray) -> bytes:
    return value if isinstance(value, bytes) else np.ascontiguousarray(value, "<u4").tobytes()


def check(entry: dict, actual: bytes) -> None:
    """Compares an entry's length, first 32 bytes and BLAKE3 hash with `actual`. Raises `Differs`."""
    name, head = entry["name"], bytes.fromhex(entry["head"])
    if len(actual) != entry["bytes"]:
        raise Differs(f"{name}: {len(actual)} bytes, {entry['bytes']} in the file")
    for place, (here, there) in enumerate(zip(actual, head)):
        if here != there:
            raise Differs(f"{name}: byte {place} is {here:#04x}, {there:#04x} in the file")
    if len(head) != min(len(actual), 32):
        raise Differs(f"{name}: the file has {len(head)} first bytes")
    if blake3.blake3(actual, max_threads=blake3.blake3.AUTO).hexdigest() != entry["blake3"]:
        raise Differs(f"{name}: another hash; the first {len(head)} bytes are equal")

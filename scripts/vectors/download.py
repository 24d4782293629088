"""`download`: the hint is the table, and nothing is sent (docs/explanation/protocols/download.md)."""

from collections.abc import Iterator

import numpy as np

import streams
from simple import MESSAGE
from vector import Step, Vector


def steps(vector: Vector) -> Iterator[Step]:
    rows = vector.blocks * vector.slot_bytes
    database = streams.insecure(vector.seeds["database"]).bytes(rows * vector.columns)
    yield "database, row-major", database
    slots = np.frombuffer(database, np.uint8).reshape(vector.blocks, vector.slot_bytes, vector.columns).swapaxes(1, 2)
    yield "slots", slots.tobytes()
    yield "query, first", b""
    yield "answer", b""
    yield "slot", slot(slots[vector.target], MESSAGE)


def slot(block: np.ndarray, support: list[tuple[int, int]]) -> bytes:
    """Returns the bytewise sum of some slots of a block. Columns beyond the segment's number of columns wrap around."""
    columns, coefficients = zip(*support)
    taken = block[np.array(columns) % len(block)].astype(np.uint64)
    return (taken * np.array(coefficients, np.uint64)[:, None]).sum(0).astype(np.uint8).tobytes()

"""The actor that holds one part of a table."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Sequence
from typing import Any

import ray

from .. import _native

logger = logging.getLogger("hushdb.ray")

KEPT = 2  # epochs: the served one, and the one before, whose queries may be in flight


class OtherEpoch(Exception):
    """The part does not have the requested epoch."""


class Part:
    """The part `index` of a table with one part for each weight. Holds the current epoch and the one before.

    source: the arguments of `_native.Source`: the table's folder or URL, whether it is verified, and the folder for copies.
    """

    def __init__(
        self, source: tuple[Any, ...], index: int, replica: int, weights: Sequence[int], threads: int, backend: str,
    ) -> None:
        self._source = _native.Source(*source)
        self._index, self._replica, self._weights = index, replica, list(weights)
        self._threads, self._backend = threads, backend
        self._epochs: dict[str, _native.Part] = {}
        self._opening = threading.Lock()
        self._born = uuid.uuid4().hex
        self.prepare(None)

    @ray.method(concurrency_group="control")
    def prepare(self, epoch: str | None) -> str:
        """Opens the current epoch of the table, and returns its name. Raises `OtherEpoch` if it is not `epoch`; None accepts any."""
        with self._opening:
            here = self._source.epoch()
            if epoch not in (None, here):
                raise OtherEpoch(f"there is the epoch {here[:12]}, not {epoch[:12]}")
            if here not in self._epochs:
                part = _native.Part(self._source, self._index, self._weights, self._threads, self._backend)
                if part.epoch != here:
                    raise OtherEpoch("the table has changed while it was opened")
                kept = list(self._epochs.items())[-(KEPT - 1):]
                self._epochs = {**dict(kept), here: part}
            return here

    @ray.method(concurrency_group="scan")
    def scan(self, epoch: str, batch: bytes) -> bytes:
        """Returns the part's reply to a batch. Both are opaque bytes here. Raises `OtherEpoch` if the part does not hold `epoch`."""
        part = self._epochs.get(epoch)
        if part is None:
            raise OtherEpoch(f"the part has no epoch {epoch[:12]}")
        said = part.scan(batch)
        if part.lost is not None:
            # A failed GPU stays unusable until its process ends. Ray starts another process.
            logger.error("part %d: %s", self._index, part.lost)
            os._exit(1)
        return said

    @ray.method(concurrency_group="health")
    def alive(self) -> tuple[str, list[str]]:
        """Returns a name that is unique to this process, and the epochs that it answers."""
        return self._born, list(self._epochs)

    @ray.method(concurrency_group="control")
    def facts(self) -> dict[str, Any]:
        """Returns the part's index, replica and weights, its process and node, and the device of each epoch."""
        node = ray.get_runtime_context().get_node_id()
        has = {"path": self._source.shown, "index": self._index, "replica": self._replica, "weights": self._weights}
        places = {epoch: part.place for epoch, part in self._epochs.items()}
        return {**has, "pid": os.getpid(), "node": node, "epochs": list(places), "places": list(places.values())}

"""An actor: one part of a table."""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Sequence
from typing import Any

import ray

from .. import _native

KEPT = 2  # epochs: the one that is served, and the one before, whose queries may be on their way


class OtherEpoch(Exception):
    """The part is not of the epoch that is asked for."""


class Part:
    """The part `index` of the table in a folder, of as many parts as there are weights: its epoch, and the one before."""

    def __init__(self, path: str, index: int, replica: int, weights: Sequence[int], threads: int, whole: bool) -> None:
        self._given = {"path": path, "index": index, "replica": replica, "weights": list(weights), "verify": whole}
        self._threads = threads
        self._epochs: dict[str, _native.Part] = {}
        self._opening = threading.Lock()
        self.prepare(None)

    @ray.method(concurrency_group="control")
    def prepare(self, epoch: str | None) -> str:
        """Opens the epoch that is in the folder, which is to be this one if one is named. Returns its name."""
        with self._opening:
            path = pathlib.Path(self._given["path"])
            here = _native.epoch_of(path)
            if epoch not in (None, here):
                raise OtherEpoch(f"the folder has the epoch {here[:12]}, not {epoch[:12]}")
            if here not in self._epochs:
                part = _native.Part(path, self._given["index"], self._given["weights"], self._threads, self._given["verify"])
                if part.epoch != here:
                    raise OtherEpoch("the table has changed while it was opened")
                kept = list(self._epochs.items())[-(KEPT - 1):]
                self._epochs = {**dict(kept), here: part}
            return here

    @ray.method(concurrency_group="scan")
    def scan(self, epoch: str, batch: bytes) -> bytes:
        """What the part says to a batch. Neither is looked at here."""
        part = self._epochs.get(epoch)
        if part is None:
            raise OtherEpoch(f"the part has no epoch {epoch[:12]}")
        return part.scan(batch)

    @ray.method(concurrency_group="control")
    def facts(self) -> dict[str, Any]:
        """What it was given, and where it is."""
        node = ray.get_runtime_context().get_node_id()
        return {**self._given, "pid": os.getpid(), "node": node, "epochs": list(self._epochs)}

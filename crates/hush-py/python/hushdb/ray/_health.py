"""Periodic health checks of the parts of a table, reported to the server of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

LOOK = 1.0  # seconds between two checks
PATIENCE = 3.0  # seconds without an answer after which a replica counts as dead


class Health:
    """A thread that checks every replica of every part. Each check calls `told(part, live, restarts)` once for each part."""

    def __init__(self, epoch: Callable[[], str], told: Callable[[int, int, int], None]) -> None:
        self._epoch, self._told = epoch, told
        self._replicas: Sequence[Sequence[Any]] = []
        self._born: dict[tuple[int, int], str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hushdb health", daemon=True)

    def watch(self, replicas: Sequence[Sequence[Any]]) -> None:
        """Checks these replicas from now on: `replicas[i]` hold part `i`."""
        self._replicas = replicas
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Ends the checks, so that no call of Ray is in flight when the process ends."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * PATIENCE)

    def _watch(self) -> None:
        while not self._stop.wait(LOOK) and ray.is_initialized():
            self._look(self._replicas)

    def _look(self, replicas: Sequence[Sequence[Any]]) -> None:
        asked = {actor.alive.remote(): (part, replica) for part, own in enumerate(replicas) for replica, actor in enumerate(own)}
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=PATIENCE)
        live, restarts = [0] * len(replicas), [0] * len(replicas)
        for ref in ready:
            part, replica = asked[ref]
            try:
                born, epochs = ray.get(ref)
            except RayError:
                continue
            live[part] += self._epoch() in epochs
            restarts[part] += self._born.setdefault((part, replica), born) != born
            self._born[part, replica] = born
        for part in range(len(replicas)):
            self._told(part, live[part], restarts[part])

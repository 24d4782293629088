"""Batches for all parts and their replies, from another replica if one is slow or dead."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from ._cluster import line

logger = logging.getLogger("hushdb.ray")

INLINE = 100_000  # bytes up to which Ray sends an argument in the call itself
LEAST_HEDGE = 0.05  # seconds after which another replica is asked, at the earliest
HEDGE = 3.0  # times the typical seconds of a batch, after which another replica is asked


class PartUnavailable(Exception):
    """No replica of a part answers."""

    def __init__(self, part: int, reason: str) -> None:
        super().__init__(reason)
        self.part = part


class Workers:
    """The actors of a table's epoch: `replicas[i]` hold part `i`. Each reply calls `replied` with its part and its seconds."""

    def __init__(self, epoch: str, replicas: Sequence[Sequence[Any]], timeout: float, replied: Callable[[int, float], None]) -> None:
        self.epoch = epoch
        self._replicas = replicas
        self._timeout, self._replied = timeout, replied
        self._lock = threading.Lock()
        self._typical: float | None = None  # a moving average of the seconds of a batch on all parts
        self._turn = 0

    def __call__(self, batch: bytes) -> list[bytes]:
        """Returns the reply of every part, in order. Raises `PartUnavailable` as soon as all replicas of a part have failed."""
        try:
            return self._replies(batch)
        except PartUnavailable as error:
            logger.warning("part %d does not answer: %s", error.part, error)
            raise

    def _replies(self, batch: bytes) -> list[bytes]:
        started = time.monotonic()
        with self._lock:
            self._turn += 1
            turn, typical = self._turn, self._typical
        # A long batch is stored once, for all actors. A short one goes with each call, without the object store.
        batch_ref = batch if len(batch) < INLINE else ray.put(batch)
        replies: list[bytes | None] = [None] * len(self._replicas)
        # Replicas take turns, so that they share the load.
        left = [[*actors[turn % len(actors):], *actors[:turn % len(actors)]] for actors in self._replicas]
        asked: dict[Any, tuple[int, float]] = {}
        late = started + max(LEAST_HEDGE, HEDGE * typical) if typical is not None else None

        def ask(part: int) -> None:
            asked[left[part].pop(0).scan.remote(self.epoch, batch_ref)] = part, time.monotonic()

        for part in range(len(left)):
            ask(part)
        while any(reply is None for reply in replies):
            now = time.monotonic()
            until = started + self._timeout
            ready, _ = ray.wait(list(asked), num_returns=1, timeout=max(0.0, min(until, late or until) - now))
            for ref in ready:
                part, since = asked.pop(ref)
                if replies[part] is not None:
                    continue
                try:
                    replies[part] = ray.get(ref)
                    self._replied(part, time.monotonic() - since)
                except RayError as error:
                    if left[part]:
                        ask(part)
                    elif part not in (other for other, _ in asked.values()):
                        raise PartUnavailable(part, line(error)) from None
            if ready:
                continue
            waiting = [part for part, reply in enumerate(replies) if reply is None]
            if time.monotonic() >= until:
                raise PartUnavailable(waiting[0], f"it has not answered in {self._timeout:.0f} s")
            late = None  # Each missing part is asked of one more replica, once.
            for part in waiting:
                if left[part]:
                    ask(part)
        took = time.monotonic() - started
        with self._lock:
            self._typical = took if self._typical is None else 0.9 * self._typical + 0.1 * took
        return replies  # type: ignore[return-value]


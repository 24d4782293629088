"""The server of a table whose parts are actors."""

from __future__ import annotations

import logging
import threading
from typing import Any

import ray
from ray.exceptions import RayError

from .. import Client, HushError, _native, _options, _threads, connect
from ._workers import Workers

LOOK = 0.5  # seconds between two looks whether the table has changed
LOOK_ELSEWHERE = 10.0  # the same where each is a request to an object store

logger = logging.getLogger("hushdb.ray")


class Head:
    """A server in this process. It has no state of its own: another one takes over at once, and several may run beside each other."""

    def __init__(self, name: str, replicas: list[list[Any]], timeout: float, options: dict[str, Any]) -> None:
        self.name = name
        self._replicas = replicas
        self._timeout = timeout
        self._source = _native.Source(*ray.get(replicas[0][0].source.remote()))
        self._epoch = ""
        self._native = _native.Server([], _options(options), _threads())
        self._stop = threading.Event()
        try:
            self._take_up(self._source.epoch())
        except BaseException:
            self._native.stop()
            raise
        self._following = threading.Thread(target=self._follow, name=f"hushdb {name}", daemon=True)
        self._following.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._native.url

    @property
    def epoch(self) -> str:
        """What it serves."""
        return self._epoch

    def connect(self, **options: Any) -> Client:
        """A client of it."""
        return connect(self.url, **options)

    def stop(self) -> None:
        """Answers what is in flight, and ends. The parts stay."""
        self._stop.set()
        self._native.stop()

    def _take_up(self, epoch: str) -> None:
        """Has every part prepared, and then serves it: a look-up is answered by one epoch."""
        actors = [actor for actors in self._replicas for actor in actors]
        # One replica of a part may be away: it opens what is there when it comes back.
        ready = dict(zip(actors, _outcomes([actor.prepare.remote(epoch) for actor in actors])))
        for part, own in enumerate(self._replicas):
            if not any(ready[actor] == epoch for actor in own):
                raise HushError(f"part {part} cannot be opened: {ready[own[0]]}")
        self._native.serve_parts(self.name, self._source, Workers(epoch, self._replicas, self._timeout))
        self._epoch = epoch

    def _follow(self) -> None:
        told = ""
        while not self._stop.wait(LOOK_ELSEWHERE if self._source.is_remote else LOOK):
            try:
                epoch = self._source.epoch()
                if epoch != self._epoch:
                    self._take_up(epoch)
                    logger.info("%s: serves the epoch %s", self.name, epoch[:12])
                told = ""
            except (HushError, RayError) as error:
                if str(error) != told:
                    told = str(error)
                    logger.warning("%s: serves the epoch %s on: %s", self.name, self._epoch[:12], told)

    def __enter__(self) -> Head:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _outcomes(refs: list[Any]) -> list[Any]:
    """What comes of calls, or the error of each."""
    outcomes = []
    for ref in refs:
        try:
            outcomes.append(ray.get(ref))
        except RayError as error:
            outcomes.append(error)
    return outcomes

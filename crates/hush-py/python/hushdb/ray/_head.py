"""The server of a table whose parts are actors."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Any

from ray.exceptions import RayError

from .. import Client, HushError, _native, _options, _threads, connect
from . import _registry
from ._cluster import line
from ._health import Health
from ._lease import Renewal
from ._workers import Workers

LOOK = 0.5  # seconds between two checks for a new epoch of the table
ENDS = 5.0  # seconds that a check may still take when the server stops
LOOK_ELSEWHERE = 10.0  # seconds between two checks if each is a request to an object store

logger = logging.getLogger("hushdb.ray")


class Head:
    """A server in this process. A head has no state: another one takes over at once, and several may run side by side."""

    def __init__(self, name: str, renewal: Renewal, timeout: float, grace: float, options: dict[str, Any]) -> None:
        self.name = name
        self._renewal = renewal
        self._timeout, self._grace = timeout, grace
        self._epoch = ""
        self._native = _native.Server([], _options(options), _threads())
        self._stop = threading.Event()
        self._health = Health(lambda: self._epoch, partial(self._native.part_seen, name))
        try:
            self._find()
            self._take_up(self._source.epoch())
            renewal.listens(self.url)
        except BaseException:
            self._native.stop()
            raise
        self._following = threading.Thread(target=self._follow, name=f"hushdb {name}", daemon=True)
        self._following.start()

    @property
    def url(self) -> str:
        """The URL on which the server listens."""
        return self._native.url

    @property
    def epoch(self) -> str:
        """The epoch of the served table."""
        return self._epoch

    @property
    def lease(self) -> float:
        """The seconds for which the parts live on without a server."""
        return self._renewal.terms["lease"]

    def connect(self, **options: Any) -> Client:
        """Connects a client to this server. Takes the options of `hushdb.connect`."""
        return connect(self.url, **options)

    def stop(self) -> None:
        """Answers the requests in flight, and ends the server. The parts stay for other heads; without any, their lease ends them."""
        self._stop.set()
        self._native.stop()
        self._health.stop()
        # A thread inside a call of Ray can keep the process from ending.
        self._following.join(ENDS)
        self._renewal.stop()

    def _find(self) -> None:
        """Looks up the parts and the source of their table. Raises `HushError` if a part is missing."""
        holder, terms = self._renewal.holder, self._renewal.terms
        replicas = _registry.actors(self.name)
        if [len(own) for own in replicas] != [terms["replicas"]] * len(terms["weights"]):
            raise HushError(f"not all parts of {self.name} are on the cluster: serve it again with the same options")
        self._source = _native.Source(*terms["source"])
        self._holder, self._replicas = holder, replicas
        self._native.expect_parts(self.name, len(replicas), self._grace)
        self._health.watch(replicas)

    def _take_up(self, epoch: str) -> None:
        """Prepares `epoch` in every part, and then serves it: a look-up is answered by one epoch. Raises `HushError` if no replica of a
        part can open it."""
        actors = [actor for actors in self._replicas for actor in actors]
        # A replica of a part may be down: the replica opens the current epoch when it restarts.
        ready = dict(zip(actors, _registry.outcomes([actor.prepare.remote(epoch) for actor in actors])))
        for part, own in enumerate(self._replicas):
            if not any(ready[actor] == epoch for actor in own):
                raise HushError(f"part {part} cannot be opened: {line(ready[own[0]])}")
        workers = Workers(epoch, self._replicas, self._timeout, partial(self._native.part_replied, self.name))
        self._native.serve_parts(self.name, self._source, workers)
        self._epoch = epoch

    def _follow(self) -> None:
        told = ""
        while not self._stop.wait(LOOK_ELSEWHERE if self._source.is_remote else LOOK):
            try:
                moved = self._renewal.holder is not self._holder
                if moved:
                    self._find()
                epoch = self._source.epoch()
                if moved or epoch != self._epoch:
                    self._take_up(epoch)
                    logger.info("%s: serves the epoch %s", self.name, epoch[:12])
                told = ""
            except (HushError, RayError) as error:
                if str(error) != told:
                    told = str(error)
                    logger.warning("%s: serves the epoch %s on: %s", self.name, self._epoch[:12], line(error))

    def __enter__(self) -> Head:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


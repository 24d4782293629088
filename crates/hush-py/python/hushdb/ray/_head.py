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

LOOK = 0.5  # seconds between two looks whether the table has changed
ENDS = 5.0  # seconds that a look may still take when the server stops
LOOK_ELSEWHERE = 10.0  # the same where each is a request to an object store

logger = logging.getLogger("hushdb.ray")


class Head:
    """A server in this process. It has no state of its own: another one takes over at once, and several may run beside each other."""

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
        """Where it listens."""
        return self._native.url

    @property
    def epoch(self) -> str:
        """Returns the facts of the served table."""
        return self._epoch

    @property
    def lease(self) -> float:
        """Seconds that the parts live on without a server."""
        return self._renewal.terms["lease"]

    def connect(self, **options: Any) -> Client:
        """Returns a client of it."""
        return connect(self.url, **options)

    def stop(self) -> None:
        """Answers what is in flight, and ends. The parts stay for other heads: without any, until their lease has run out."""
        self._stop.set()
        self._native.stop()
        self._health.stop()
        # A thread that is in a call of Ray while the process ends can keep it from ending.
        self._following.join(ENDS)
        self._renewal.stop()

    def _find(self) -> None:
        """Looks up the parts, and where their table is."""
        holder, terms = self._renewal.holder, self._renewal.terms
        replicas = _registry.actors(self.name)
        if [len(own) for own in replicas] != [terms["replicas"]] * len(terms["weights"]):
            raise HushError(f"not all parts of {self.name} are on the cluster: serve it again with the same options")
        self._source = _native.Source(*terms["source"])
        self._holder, self._replicas = holder, replicas
        self._native.expect_parts(self.name, len(replicas), self._grace)
        self._health.watch(replicas)

    def _take_up(self, epoch: str) -> None:
        """Has every part prepared, and then serves it: a look-up is answered by one epoch."""
        actors = [actor for actors in self._replicas for actor in actors]
        # One replica of a part may be away: it opens what is there when it comes back.
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


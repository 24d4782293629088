"""The lease of a table's parts. Heads renew it; without a renewal for its length, the parts end."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayError
from ray.util import placement_group

from . import _registry
from ._cluster import NAMESPACE, line

LEASE = 60.0  # the default seconds that parts live without a head
RENEWALS = 6  # the renewals in the time of a lease: parts end only after several are lost

logger = logging.getLogger("hushdb.ray")


class Lease:
    """The actor that owns the parts of one table. It keeps their terms, and ends them when no head has renewed the lease for `seconds`.

    terms: `source`, `weights`, `replicas` and `bundles` of the parts, which are the same for every head of the table.
    """

    def __init__(self, name: str, terms: dict[str, Any], seconds: float) -> None:
        self._name, self._terms, self._seconds = name, terms, seconds
        self._heads: dict[str, tuple[str, float]] = {}
        self._until = time.monotonic() + seconds
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, name="lease", daemon=True).start()

    def terms(self) -> dict[str, Any]:
        """Returns the terms, and the length of the lease in `lease`."""
        return {**self._terms, "lease": self._seconds}

    def group(self, strategy: str) -> Any:
        """Returns the placement group of the parts. The first call creates it."""
        for group in _registry.groups(self._name):
            return group
        bundles = self._terms["bundles"] * self._terms["replicas"]
        return placement_group(bundles, strategy=strategy, name=_registry.group_name(self._name), lifetime="detached")

    def renew(self, head: str, url: str) -> None:
        """Renews the lease for a head."""
        now = time.monotonic()
        with self._lock:
            self._until = now + self._seconds
            self._heads[head] = (url, now)

    def leave(self, head: str) -> None:
        """Removes a head that has ended. The lease goes on: another head may come."""
        with self._lock:
            self._heads.pop(head, None)

    def facts(self) -> dict[str, Any]:
        """Returns the URLs of the heads that renew the lease, its length, and the seconds left."""
        now = time.monotonic()
        with self._lock:
            heads = [url for url, at in self._heads.values() if url and now - at < 2 * self._seconds / RENEWALS]
            return {"heads": sorted(heads), "left": self._until - now, "lease": self._seconds}

    def _watch(self) -> None:
        while True:
            with self._lock:
                left = self._until - time.monotonic()
            if left > 0:
                time.sleep(min(left, self._seconds / RENEWALS))
                continue
            logger.warning("%s: no head has renewed the lease for %.0f s: its parts end", self._name, self._seconds)
            try:
                _registry.end(self._name)
            except Exception as error:  # noqa: BLE001 any failure to end the parts is retried
                logger.error("%s: its parts cannot be ended: %s", self._name, error)
            time.sleep(1)


class Renewal:
    """A thread of this process that renews the lease of a table until `stop`."""

    def __init__(self, name: str, holder: Any, terms: dict[str, Any]) -> None:
        self.holder, self.terms = holder, terms
        self.url = ""
        self._name, self._head = name, uuid.uuid4().hex
        self._stop = threading.Event()
        self._renewed()
        self._thread = threading.Thread(target=self._renew, name=f"hushdb lease of {name}", daemon=True)
        self._thread.start()

    def listens(self, url: str) -> None:
        """Tells the lease where the head listens."""
        self.url = url
        self._renewed()

    def _renewed(self) -> None:
        ray.get(self.holder.renew.remote(self._head, self.url), timeout=max(5.0, self.terms["lease"] / RENEWALS))

    def stop(self) -> None:
        """Ends the renewals. The parts stay until the lease runs out."""
        self._stop.set()
        self._thread.join()
        try:
            ray.get(self.holder.leave.remote(self._head), timeout=5)
        except RayError:
            pass  # A head that does not renew is forgotten soon.

    def _renew(self) -> None:
        told = ""
        while not self._stop.wait(1.0 if told else self.terms["lease"] / RENEWALS):
            if not ray.is_initialized():
                return
            try:
                self._renewed()
                told = ""
            except RayError as error:
                if not told:
                    logger.warning("%s: the lease of its parts cannot be renewed: %s", self._name, line(error))
                told = line(error)
                if isinstance(error, ActorDiedError):
                    self._find()

    def _find(self) -> None:
        """Adopts the lease of new parts that replaced stopped ones."""
        holder = _registry.lease(self._name)
        if holder is None or holder == self.holder:
            return
        try:
            terms = ray.get(holder.terms.remote(), timeout=10)
        except RayError:
            return
        self.holder, self.terms = holder, terms
        logger.warning("%s: its parts were stopped, and others are there", self._name)


def taken(name: str, terms: dict[str, Any], seconds: float) -> tuple[Renewal, bool]:
    """Renews the lease of a table, and creates the lease if there is none. Returns the renewal, and whether the lease was created here."""
    options = {"name": _registry.lease_name(name), "namespace": NAMESPACE, "lifetime": "detached", "num_cpus": 0, "max_restarts": -1}
    try:
        holder = ray.remote(Lease).options(**options).remote(name, terms, seconds)
    except ValueError:
        renewal = renewed(name)
        # A lease that ended between the two calls is created anew.
        return (renewal, False) if renewal else taken(name, terms, seconds)
    return Renewal(name, holder, ray.get(holder.terms.remote())), True


def renewed(name: str) -> Renewal | None:
    """Renews the lease of a table that is on the cluster. Returns None if the table has no lease."""
    holder = _registry.lease(name)
    return holder and Renewal(name, holder, ray.get(holder.terms.remote()))

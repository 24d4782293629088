"""The lease of a table's parts: heads renew it, and the parts end when nobody has for long enough."""

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

LEASE = 60.0  # seconds that parts live without a head, unless told
RENEWALS = 6  # in the time of a lease: it takes several lost ones until parts end

logger = logging.getLogger("hushdb.ray")


class Lease:
    """The actor that owns the parts of one table: it knows their terms, and ends them when no head has renewed the lease for `seconds`.

    terms: `source`, `weights`, `replicas` and `bundles` of the parts, which every head of the table agrees to.
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
        """Returns the placement group of the parts, which is made for the first that asks."""
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
        """Notes that a head has ended. The lease goes on: another head may come."""
        with self._lock:
            self._heads.pop(head, None)

    def facts(self) -> dict[str, Any]:
        """Returns the URLs of the heads that renew the lease, and the seconds that are left of it."""
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
            except Exception as error:  # noqa: BLE001 whatever keeps parts from ending, it is tried again
                logger.error("%s: its parts cannot be ended: %s", self._name, error)
            time.sleep(1)


class Renewal:
    """Renews the lease of a table until `stop`, from a thread of this process."""

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
        """Renews no more. The parts stay for as long as the lease."""
        self._stop.set()
        self._thread.join()
        try:
            ray.get(self.holder.leave.remote(self._head), timeout=5)
        except RayError:
            pass  # Whoever does not renew is forgotten soon.

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
        """Takes up the lease of parts that were started in place of others, which were stopped."""
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
    """Renews the lease of a table, which is made if there is none. Returns whether it was made here."""
    options = {"name": _registry.lease_name(name), "namespace": NAMESPACE, "lifetime": "detached", "num_cpus": 0, "max_restarts": -1}
    try:
        holder = ray.remote(Lease).options(**options).remote(name, terms, seconds)
    except ValueError:
        return renewed(name), False
    return Renewal(name, holder, ray.get(holder.terms.remote())), True


def renewed(name: str) -> Renewal | None:
    """Renews the lease of a table that is on the cluster."""
    holder = _registry.lease(name)
    return holder and Renewal(name, holder, ray.get(holder.terms.remote()))

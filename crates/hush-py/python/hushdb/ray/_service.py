"""Parts on a cluster: where they are placed, which are there, and how they end."""

from __future__ import annotations

import logging
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from .. import Client, HushError, OptionError, _native
from . import _lease, _registry
from ._cluster import NAMESPACE, _cluster, line
from ._head import Head
from ._lease import LEASE
from ._part import Part

READY = 600.0  # seconds that parts may take to be placed, and opened
TIMEOUT = 10.0  # seconds that a part may take for a batch, unless told
GRACE = 10.0  # seconds that a part may be without a live replica while its server is ready, unless told

logger = logging.getLogger("hushdb.ray")
# Ray warns at each actor that it cannot come back once its group is removed, which is what is wanted: both end together.
logging.getLogger("ray.actor").addFilter(lambda record: "restartable detached actor" not in record.getMessage())


class Service:
    """A server of a table whose parts are on a cluster. Its `with` ends the server, and nothing that other servers need."""

    def __init__(self, head: Head, ends_cluster: bool) -> None:
        self.head = head
        self.name = head.name
        self.ends_cluster = ends_cluster
        """Whether the cluster was started for it, and ends with it."""

    @property
    def url(self) -> str:
        """Where the server listens."""
        return self.head.url

    @property
    def lease(self) -> float:
        """Seconds that the parts live on without a server."""
        return self.head.lease

    def connect(self, **options: Any) -> Client:
        """Returns a client of it."""
        return self.head.connect(**options)

    def status(self) -> list[dict[str, Any]]:
        """Returns the replicas of every part: `status`."""
        return [part for part in status() if part["name"] == self.name]

    def stop(self) -> None:
        """Ends the server, and the cluster if it was started for it. Elsewhere `hushdb.ray.stop` ends the parts, or their lease does."""
        self.head.stop()
        if self.ends_cluster and ray.is_initialized():
            _registry.end(self.name)
            ray.shutdown()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(
    table: str | os.PathLike[str],
    *,
    name: str | None = None,
    parts: int | None = None,
    replicas: int = 1,
    weights: Sequence[int] | None = None,
    cpus: float | Sequence[float] = 1,
    gpus: float | Sequence[float] = 0,
    nodes: str | Sequence[str] | None = None,
    memory: int | None = None,
    resources: dict[str, float] | None = None,
    verify: bool = True,
    cache: str | os.PathLike[str] | None = None,
    timeout: float = TIMEOUT,
    grace: float = GRACE,
    lease: float = LEASE,
    address: str | None = None,
    **options: Any,
) -> Service:
    """Puts a table in parts on a cluster, and serves it in this process. Parts that are there with the same options are taken up.

    table: a folder that every node sees, or the URL of a table in an object store or on a web server, of which every node fetches
        its parts: s3://bucket/people, as `hushdb push` puts it there. Credentials are those of each node's own environment.
    name: what clients call the table; the last part of where it is if not given.
    parts, weights: how many, 2 if not given, and the share of the table that each has: weights=[2, 2, 1, 2, 1] for machines of other
        sizes.
    replicas: actors that have the same part, on different nodes: one takes over when the other one dies, or is slow.
    cpus, resources: what an actor takes of its node, as Ray counts it; it scans with as many threads. cpus=[16, 8] is of each part.
    gpus: what of a GPU an actor takes, or that of each part: 1, or less where several share one; its part is then in the memory of
        that GPU. The package has to be built for GPUs.
    nodes: the kind of node for all parts, or of each: of a resource of this name that nodes offer, an actor takes one.
    memory: bytes that an actor takes of its node; what `hushdb plan` reckons for its part, with the largest batches, if not given.
    verify: whether the checksums of a folder are checked of what is read of it; what is fetched always is.
    cache: the folder of each node in which fetched parts are kept; the user's own cache folder if not given.
    timeout: seconds that a part may take for a batch.
    grace: seconds that a part may be without a live replica until the server says that it is not ready.
    lease: seconds that the parts live on without a server. Every server of the table renews it.
    address: of the cluster; one is started on this machine if none is given, and ends with the service.
    options: those of `hushdb serve`, with underscores, but for those about folders: listen="0.0.0.0:7700", tokens=FILE, tls_cert=FILE, ..
    """
    place = os.fspath(table)
    source = (place if "://" in place else str(pathlib.Path(place).resolve()), verify, cache and os.fspath(cache))
    there = _native.Source(*source)
    name = _native.table_name(name or there.name)
    if weights is not None and parts not in (None, len(weights)):
        raise OptionError(f"{parts} parts have {parts} weights, and there are {len(weights)}: leave one of both out")
    weights = list(weights) if weights is not None else [1] * (2 if parts is None else parts)
    if not weights or min(weights) < 0 or not any(weights) or replicas < 1:
        raise OptionError("there is at least one part, and one replica of each; weights are numbers from 0 on, not all 0")
    # What an actor of each part takes.
    each, devices = ([own] * len(weights) if isinstance(own, (int, float)) else list(own) for own in (cpus, gpus))
    kinds = [nodes] * len(weights) if nodes is None or isinstance(nodes, str) else list(nodes)
    if len(each) != len(weights) or len(kinds) != len(weights) or min(each) <= 0:
        raise OptionError(f"there are {len(weights)} parts: cpus and nodes are one for all, or as many; cpus are numbers above 0")
    if len(devices) != len(weights) or not all(0 <= own <= 1 for own in devices):
        raise OptionError(f"there are {len(weights)} parts: gpus are one number for all, or as many, from 0 to 1: a part is on one GPU")
    takes = there.memory(weights) if memory is None else [memory] * len(weights)
    bundles = [
        {"CPU": own, "memory": own_memory, **({"GPU": gpu} if gpu else {}), **(resources or {}), **({kind: 1.0} if kind else {})}
        for own, own_memory, gpu, kind in zip(each, takes, devices, kinds)
    ]
    started = _cluster(address, starting=max(1, math.ceil(replicas * sum(each))))
    renewal, is_new = None, False
    try:
        terms = {"source": source, "weights": weights, "replicas": replicas, "bundles": bundles}
        renewal, is_new = _lease.taken(name, terms, lease)
        _check_terms(name, terms, renewal.terms)
        _place(name, renewal)
        return Service(Head(name, renewal, timeout, grace, {"listen": "127.0.0.1:0", **options}), started)
    except BaseException as error:
        if renewal is not None:
            renewal.stop()
        if ray.is_initialized():
            if is_new:
                _registry.end(name)
            if started:
                ray.shutdown()
        if isinstance(error, RayError):
            raise HushError(f"{name} cannot be served: {line(error)}") from None
        raise


def _check_terms(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Refuses other parts than those that are there. What they take of memory was reckoned when they were started."""
    def compared(terms: dict[str, Any]) -> dict[str, Any]:
        place, verify, cache = terms["source"]
        # The place without what is secret in it.
        source = {"place": _native.Source(place, verify, cache).shown, "verify": verify, "cache": cache}
        bundles = [{what: much for what, much in bundle.items() if what != "memory"} for bundle in terms["bundles"]]
        return {**source, "weights": terms["weights"], "replicas": terms["replicas"], "resources": bundles}

    ours, theirs = compared(ours), compared(theirs)
    other = [what for what in ours if ours[what] != theirs[what]]
    if other:
        said = ", ".join(f"{what} {theirs[what]}, not {ours[what]}" for what in other)
        raise OptionError(f"there is a table {name} on this cluster with {said}: stop it first, or serve it by another head")


def head(name: str, *, address: str | None = None, timeout: float = TIMEOUT, grace: float = GRACE, **options: Any) -> Head:
    """Another server of a table that is on the cluster."""
    _cluster(address)
    renewal = _lease.renewed(name)
    if renewal is None:
        raise OptionError(_none(name))
    try:
        return Head(name, renewal, timeout, grace, {"listen": "127.0.0.1:0", **options})
    except BaseException:
        renewal.stop()
        raise


def status(address: str | None = None) -> list[dict[str, Any]]:
    """Returns all parts on a cluster: name, part, replica, weights, path, pid, node, epochs, and the place of each: cpu or cuda; of one that does not answer, why."""
    _cluster(address)
    found = []
    for name in _registry.tables():
        actors = _registry.actors(name)
        each = [(part, replica, actor) for part, own in enumerate(actors) for replica, actor in enumerate(own)]
        outcomes = _registry.outcomes([actor.facts.remote() for _, _, actor in each])
        for (part, replica, _), facts in zip(each, outcomes):
            said = facts if isinstance(facts, dict) else {"error": line(facts)}
            said.pop("index", None)
            found.append({"name": name, "part": part, **said, "replica": replica})
    return found


def leases(address: str | None = None) -> list[dict[str, Any]]:
    """Returns the leases of all tables on a cluster: name, heads (their URLs), lease, and the seconds that are left of it; of one that does not answer, why."""
    _cluster(address)
    found = []
    for name in _registry.tables():
        holder = _registry.lease(name)
        (facts,) = _registry.outcomes([holder.facts.remote()], timeout=10) if holder else [{"error": "the parts have no lease"}]
        found.append({"name": name, **(facts if isinstance(facts, dict) else {"error": line(facts)})})
    return found


def stop(name: str, address: str | None = None) -> int:
    """Ends the parts of a table, and returns how many. Servers of it answer 503 from then on."""
    _cluster(address)
    if name not in _registry.tables():
        raise OptionError(_none(name))
    return _registry.end(name)


def _none(name: str) -> str:
    there = ", ".join(_registry.tables())
    return f"there is no table {name} on this cluster; " + (f"there are {there}" if there else "there are none")


def _place(name: str, renewal: _lease.Renewal) -> None:
    """Starts what is not there yet of an actor for every replica of every part, each on a node of its own if there are as many, and waits
    until all are open."""
    terms = renewal.terms
    source, weights, replicas, bundles = (terms[what] for what in ("source", "weights", "replicas", "bundles"))
    count = len(weights) * replicas
    nodes = sum(node["Alive"] for node in ray.nodes())
    strategy = "STRICT_SPREAD" if nodes >= count else "SPREAD"
    if strategy == "SPREAD" and replicas > 1:
        logger.warning("%s: %d actors on %d nodes: replicas of a part may share one, and die with it", name, count, nodes)
    wanted = bundles[0] if all(bundle == bundles[0] for bundle in bundles) else bundles
    group = ray.get(renewal.holder.group.remote(strategy))
    if not group.wait(1):
        logger.warning("%s: waiting for room for %d actors of %s: the cluster has %s", name, count, wanted, ray.available_resources())
    if not group.wait(READY):
        raise HushError(f"the cluster has no room for {count} actors of {wanted}: it has {ray.cluster_resources()}")
    # Parts are prepared, and say what they are, while they scan; a scan waits for the next batch's bytes.
    actor = ray.remote(concurrency_groups={"scan": 2, "control": 1, "health": 1})(Part)
    refs = []
    for at in range(count):
        # All parts once, then again: replicas of one are apart where nodes are few.
        replica, part = divmod(at, len(weights))
        taken = dict(bundles[part])
        cpus, gpus, memory = taken.pop("CPU"), taken.pop("GPU", 0), taken.pop("memory")
        placed = actor.options(
            name=_registry.part_name(name, part, replica), namespace=NAMESPACE, lifetime="detached", get_if_exists=True,
            num_cpus=cpus, num_gpus=gpus, memory=memory, resources=taken, max_restarts=-1, max_task_retries=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=at))
        handle = placed.remote(source, part, replica, weights, max(1, int(cpus)), "cuda" if gpus else "cpu")
        refs.append(handle.facts.remote())
    for outcome in _registry.outcomes(refs):
        if isinstance(outcome, Exception):
            raise HushError(f"a part cannot be opened: {line(outcome)}")


"""Placement, listing and end of the parts of tables on a cluster."""

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

READY = 600.0  # seconds that the placement of parts may take
TIMEOUT = 10.0  # the default seconds that a part may take for a batch
GRACE = 10.0  # the default seconds that a part may be without a live replica while its server stays ready

logger = logging.getLogger("hushdb.ray")
# Ray warns for each actor that it cannot restart once its group is removed. That is intended: both end together.
logging.getLogger("ray.actor").addFilter(lambda record: "restartable detached actor" not in record.getMessage())


class Service:
    """A server of a table whose parts are on a cluster. Its `with` block ends the server, and nothing that other servers need."""

    def __init__(self, head: Head, ends_cluster: bool) -> None:
        self.head = head
        self.name = head.name
        self.ends_cluster = ends_cluster
        """Whether the cluster was started for this service, and ends with it."""

    @property
    def url(self) -> str:
        """The URL on which the server listens."""
        return self.head.url

    @property
    def lease(self) -> float:
        """The seconds for which the parts live on without a server."""
        return self.head.lease

    def connect(self, **options: Any) -> Client:
        """Connects a client to this server. Takes the options of `hushdb.connect`."""
        return self.head.connect(**options)

    def status(self) -> list[dict[str, Any]]:
        """Returns the replicas of every part of this table, each as `hushdb.ray.status` describes it."""
        return [part for part in status() if part["name"] == self.name]

    def stop(self) -> None:
        """Ends the server, and the cluster if it was started for this service. On another cluster, `hushdb.ray.stop` ends the parts, or
        their lease does."""
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
    """Places a table in parts on a cluster, and serves it in this process. Existing parts with the same options are used.

    table: a folder that every node sees, or the URL of a table in an object store or on a web server, as `hushdb push` puts it there:
        s3://bucket/people. Every node fetches its parts, with the credentials of its own environment.
    name: the table's name for clients; the last component of its folder or URL if not given.
    parts, weights: the number of parts, 2 if not given, and the share of the table in each: weights=[2, 2, 1, 2, 1] for machines of
        different sizes.
    replicas: the number of actors with the same part, on different nodes: one takes over when another dies or is slow.
    cpus, resources: the resources that an actor reserves on its node, as Ray counts them. It scans with `cpus` threads. cpus=[16, 8]
        sets each part.
    gpus: the share of a GPU that an actor reserves, for all parts or for each: 1, or less if several actors share a GPU. The part is
        then in the memory of that GPU. The package has to be built for GPUs.
    nodes: the kind of node for all parts, or for each: the name of a custom resource of nodes, of which an actor reserves one.
    memory: the bytes that an actor reserves on its node. If not given, the estimate of `hushdb plan` for its part and the largest
        batches.
    verify: whether the checksums of files that are read from a folder are checked. Fetched files are always checked.
    cache: the folder of each node in which fetched parts are kept; the user's own cache folder if not given.
    timeout: the seconds that a part may take for a batch.
    grace: the seconds that a part may be without a live replica before the server reports that it is not ready.
    lease: the seconds for which the parts live on without a server. Every server of the table renews the lease.
    address: the address of the cluster. If not given, one is started on this machine, and ends with the service.
    options: the options of `hushdb serve`, with underscores, except those about folders: listen="0.0.0.0:7700", tokens=FILE, ..
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
    # The resources that an actor of each part reserves.
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
    """Raises `OptionError` if the parts on the cluster have other terms than `ours`. Memory is not compared: an estimate may change."""
    def compared(terms: dict[str, Any]) -> dict[str, Any]:
        place, verify, cache = terms["source"]
        # The place without its secrets.
        source = {"place": _native.Source(place, verify, cache).shown, "verify": verify, "cache": cache}
        bundles = [{what: much for what, much in bundle.items() if what != "memory"} for bundle in terms["bundles"]]
        return {**source, "weights": terms["weights"], "replicas": terms["replicas"], "resources": bundles}

    ours, theirs = compared(ours), compared(theirs)
    other = [what for what in ours if ours[what] != theirs[what]]
    if other:
        said = ", ".join(f"{what} {theirs[what]}, not {ours[what]}" for what in other)
        raise OptionError(f"there is a table {name} on this cluster with {said}: stop it first, or serve it by another head")


def head(name: str, *, address: str | None = None, timeout: float = TIMEOUT, grace: float = GRACE, **options: Any) -> Head:
    """Starts another server of a table that is on the cluster. Raises `OptionError` if there is no such table."""
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
    """Returns all parts on a cluster: name, part, replica, weights, path, pid, node, epochs, and in `places` the device of each epoch: cpu
    or cuda. A part that does not answer has `error` instead."""
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
    """Returns the leases of all tables on a cluster: name, heads (their URLs), lease (seconds), and left (seconds). A lease that does not
    answer has `error` instead."""
    _cluster(address)
    found = []
    for name in _registry.tables():
        holder = _registry.lease(name)
        (facts,) = _registry.outcomes([holder.facts.remote()], timeout=10) if holder else [{"error": "the parts have no lease"}]
        found.append({"name": name, **(facts if isinstance(facts, dict) else {"error": line(facts)})})
    return found


def stop(name: str, address: str | None = None) -> int:
    """Ends the parts of a table, and returns how many. Its servers then answer 503. Raises `OptionError` if there is no such table."""
    _cluster(address)
    if name not in _registry.tables():
        raise OptionError(_none(name))
    return _registry.end(name)


def _none(name: str) -> str:
    there = ", ".join(_registry.tables())
    return f"there is no table {name} on this cluster; " + (f"there are {there}" if there else "there are none")


def _place(name: str, renewal: _lease.Renewal) -> None:
    """Starts the missing actors, one for each replica of each part, and waits until all are open. Each actor has its own node if there are
    enough nodes. Raises `HushError` if the cluster has no room, or a part cannot be opened."""
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
    # Actors answer `prepare`, `facts` and `alive` while they scan. The second scan slot receives the next batch's bytes.
    actor = ray.remote(concurrency_groups={"scan": 2, "control": 1, "health": 1})(Part)
    refs = []
    for at in range(count):
        # The first replicas of all parts come before the second ones: replicas of a part are apart even if nodes are few.
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


"""Parts on a cluster: where they are placed, what there is of them, and how they end."""

from __future__ import annotations

import logging
import math
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import ray
from ray.util import list_named_actors, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from .. import Client, HushError, OptionError, _native
from ._cluster import NAMESPACE, _cluster
from ._head import Head, _outcomes
from ._part import Part

READY = 600.0  # seconds that parts may take to be placed, and opened
TIMEOUT = 10.0  # seconds that a part may take for a batch, unless told

logger = logging.getLogger("hushdb.ray")


class Service:
    """The parts of a table, and a server of them. It ends with its `with`, or by `stop`."""

    def __init__(self, head: Head, ends_cluster: bool) -> None:
        self.head = head
        self.name = head.name
        self._ends_cluster = ends_cluster

    @property
    def url(self) -> str:
        """Where the server listens."""
        return self.head.url

    def connect(self, **options: Any) -> Client:
        """A client of it."""
        return self.head.connect(**options)

    def status(self) -> list[dict[str, Any]]:
        """What there is of every part: `status`."""
        return [part for part in status() if part["name"] == self.name]

    def stop(self) -> None:
        """Ends the server, the parts, and the cluster if it was started for them."""
        self.head.stop()
        if ray.is_initialized():
            stop(self.name)
            if self._ends_cluster:
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
    address: str | None = None,
    **options: Any,
) -> Service:
    """Puts a table in parts on a cluster, and serves it in this process.

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
    # Before anything is started: what is there is another's.
    if _actors(name):
        raise OptionError(f"there is a table {name} on this cluster: stop it first, or serve it by another head")
    try:
        _place(name, source, weights, replicas, bundles)
        return Service(head(name, timeout=timeout, **options), started)
    except BaseException:
        if ray.is_initialized():
            stop(name)
            if started:
                ray.shutdown()
        raise


def head(name: str, *, address: str | None = None, timeout: float = TIMEOUT, **options: Any) -> Head:
    """Another server of a table that is on the cluster."""
    _cluster(address)
    replicas = _actors(name)
    if not replicas:
        raise OptionError(f"there is no table {name} on this cluster")
    return Head(name, replicas, timeout, {"listen": "127.0.0.1:0", **options})


def status(address: str | None = None) -> list[dict[str, Any]]:
    """All parts on a cluster: name, part, replica, weights, path, pid, node, epochs, and the place of each: cpu or cuda; of one that does not answer, why."""
    _cluster(address)
    found = []
    for name in _names():
        actors = _actors(name)
        each = [(part, replica, actor) for part, own in enumerate(actors) for replica, actor in enumerate(own)]
        outcomes = _outcomes([actor.facts.remote() for _, _, actor in each])
        for (part, replica, _), facts in zip(each, outcomes):
            said = facts if isinstance(facts, dict) else {"error": str(facts).splitlines()[0]}
            said.pop("index", None)
            found.append({"name": name, "part": part, **said, "replica": replica})
    return found


def stop(name: str, address: str | None = None) -> None:
    """Ends the parts of a table. Servers of it answer 503 from then on."""
    _cluster(address)
    for own in _actors(name):
        for actor in own:
            ray.kill(actor)
    for group in placement_group_table().values():
        if group["name"] == _group(name) and group["state"] != "REMOVED":
            remove_placement_group(ray.util.get_placement_group(group["name"]))


def _place(
    name: str, source: tuple[Any, ...], weights: list[int], replicas: int, bundles: list[dict[str, float]],
) -> None:
    """Starts an actor for every replica of every part, each on a node of its own if there are as many, and waits until all are open."""
    count = len(weights) * replicas
    nodes = sum(node["Alive"] for node in ray.nodes())
    strategy = "STRICT_SPREAD" if nodes >= count else "SPREAD"
    if strategy == "SPREAD" and replicas > 1:
        logger.warning("%s: %d actors on %d nodes: replicas of a part may share one, and die with it", name, count, nodes)
    wanted = bundles[0] if all(bundle == bundles[0] for bundle in bundles) else bundles
    group = placement_group(bundles * replicas, strategy=strategy, name=_group(name), lifetime="detached")
    if not group.wait(1):
        logger.warning("%s: waiting for room for %d actors of %s: the cluster has %s", name, count, wanted, ray.available_resources())
    if not group.wait(READY):
        raise HushError(f"the cluster has no room for {count} actors of {wanted}: it has {ray.cluster_resources()}")
    # Parts are prepared, and say what they are, while they scan; a scan waits for the next batch's bytes.
    actor = ray.remote(concurrency_groups={"scan": 2, "control": 1})(Part)
    refs = []
    for at in range(count):
        # All parts once, then again: replicas of one are apart where nodes are few.
        replica, part = divmod(at, len(weights))
        taken = dict(bundles[part])
        cpus, gpus, memory = taken.pop("CPU"), taken.pop("GPU", 0), taken.pop("memory")
        placed = actor.options(
            name=f"{name}/{part}/{replica}", namespace=NAMESPACE, lifetime="detached", num_cpus=cpus, num_gpus=gpus, memory=memory, resources=taken,
            max_restarts=-1, max_task_retries=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=at))
        handle = placed.remote(source, part, replica, weights, max(1, int(cpus)), "cuda" if gpus else "cpu")
        refs.append(handle.facts.remote())
    for outcome in _outcomes(refs):
        if isinstance(outcome, Exception):
            raise HushError(f"a part cannot be opened: {outcome}")


def _group(name: str) -> str:
    return f"hushdb/{name}"


_NAMED = re.compile(r"(?P<name>.+)/(?P<part>\d+)/(?P<replica>\d+)")


def _named() -> list[tuple[str, int, int]]:
    all_named = (actor["name"] for actor in list_named_actors(all_namespaces=True) if actor["namespace"] == NAMESPACE)
    matches = filter(None, map(_NAMED.fullmatch, all_named))
    return sorted((match["name"], int(match["part"]), int(match["replica"])) for match in matches)


def _names() -> list[str]:
    return sorted({name for name, _, _ in _named()})


def _actors(name: str) -> list[list[Any]]:
    """The actors of a table: the replicas of each part."""
    replicas: list[list[Any]] = []
    for own, part, replica in _named():
        if own == name:
            replicas += [[] for _ in range(part + 1 - len(replicas))]
            replicas[part].append(ray.get_actor(f"{own}/{part}/{replica}", namespace=NAMESPACE))
    return replicas

"""Look-ups of the actors of tables on a cluster, by their names."""

from __future__ import annotations

import binascii
import re
from typing import Any

import ray
from ray import PlacementGroupID
from ray.exceptions import RayError
from ray.util import list_named_actors, placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

from ._cluster import NAMESPACE

_PART = re.compile(r"(?P<name>.+)/(?P<part>\d+)/(?P<replica>\d+)")
_LEASE = re.compile(r"(?P<name>.+)/lease")


def part_name(name: str, part: int, replica: int) -> str:
    return f"{name}/{part}/{replica}"


def lease_name(name: str) -> str:
    return f"{name}/lease"


def group_name(name: str) -> str:
    return f"hushdb/{name}"


def _ours() -> list[str]:
    return [actor["name"] for actor in list_named_actors(all_namespaces=True) if actor["namespace"] == NAMESPACE]


def _parts() -> list[tuple[str, int, int]]:
    matches = filter(None, map(_PART.fullmatch, _ours()))
    return sorted((match["name"], int(match["part"]), int(match["replica"])) for match in matches)


def tables() -> list[str]:
    """Returns the names of the tables that have a lease or a part."""
    leases = {match["name"] for match in filter(None, map(_LEASE.fullmatch, _ours()))}
    return sorted(leases | {name for name, _, _ in _parts()})


def actors(name: str) -> list[list[Any]]:
    """Returns the actors of a table: item `i` holds the replicas of part `i`."""
    replicas: list[list[Any]] = []
    for own, part, replica in _parts():
        if own == name:
            replicas += [[] for _ in range(part + 1 - len(replicas))]
            try:
                replicas[part].append(ray.get_actor(part_name(own, part, replica), namespace=NAMESPACE))
            except ValueError:
                continue  # The actor has ended since the names were listed.
    return replicas


def lease(name: str) -> Any | None:
    """Returns the actor that holds the lease of a table, if there is one."""
    try:
        return ray.get_actor(lease_name(name), namespace=NAMESPACE)
    except ValueError:
        return None


def groups(name: str) -> list[PlacementGroup]:
    """Returns the placement groups of a table that are not removed, from all namespaces."""
    table = placement_group_table().values()
    ids = [group["placement_group_id"] for group in table if group["name"] == group_name(name) and group["state"] != "REMOVED"]
    return [PlacementGroup(PlacementGroupID(binascii.unhexlify(group))) for group in ids]


def end(name: str) -> int:
    """Ends the actors of a table, and its lease last. Returns the number of actors that held parts."""
    each = [actor for own in actors(name) for actor in own]
    for actor in each:
        ray.kill(actor)
    for group in groups(name):
        remove_placement_group(group)
    holder = lease(name)
    if holder is not None:
        ray.kill(holder)
    return len(each)


def outcomes(refs: list[Any], timeout: float | None = None) -> list[Any]:
    """Returns the result of each call, or its error."""
    results = []
    for ref in refs:
        try:
            results.append(ray.get(ref, timeout=timeout))
        except RayError as error:
            results.append(error)
    return results

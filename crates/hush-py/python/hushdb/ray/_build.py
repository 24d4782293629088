"""Builds whose longest part is computed on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import RayError

from .. import HushError, _build, _native, _threads
from ._cluster import _cluster

PIECES = 4  # of the work, for each place that computes: so that the last ones end together
MOST = 4  # plaintexts at once: of wide tables each is 16 MiB and more


def build(
    data: Any,
    *,
    out: str | os.PathLike[str],
    key: str | list[str] | None = None,
    value: str | list[str] | None = None,
    cpus: float = 1,
    address: str | None = None,
    threads: int | None = None,
    on_progress: Callable[[str, int, int, str], None] | None = None,
    **options: Any,
) -> str:
    """Builds a table in the folder `out`, which every node sees. Returns its epoch. It is the table of `hushdb.build`, byte for byte.

    Records are read and laid out in this process; pack columns, which take `colpack` longest, are computed by tasks on the cluster. What
    they have done is kept: a build that is interrupted goes on behind it, with a cluster or without.

    cpus: what a task takes of its node, and its threads.
    address: of the cluster; one is started on this machine if none is given, and ends with the build.
    all others: as for `hushdb.build`.
    """
    started = _cluster(address, starting=threads or _threads())
    compute = ray.remote(num_cpus=cpus, max_retries=3)(_chained)

    def crew(folder: os.PathLike[str], segment: int, ranges: list[tuple[int, int]]) -> Iterator[tuple[int, list[bytes]]]:
        places = max(1, int(ray.cluster_resources().get("CPU", 1) // cpus))
        count = sum(end - start for start, end in ranges)
        most = max(1, min(MOST, count // (PIECES * places)))
        pieces = [(at, min(end, at + most)) for start, end in ranges for at in range(start, end, most)]
        # No more are under way than compute, and as many wait: what comes back is written before more is asked for.
        asked: dict[Any, tuple[int, int]] = {}
        while pieces or asked:
            while pieces and len(asked) < 2 * places:
                piece = pieces.pop(0)
                asked[compute.remote(str(folder), segment, *piece, max(1, int(cpus)))] = piece
            (ready,), _ = ray.wait(list(asked), num_returns=1)
            start, _ = asked.pop(ready)
            try:
                yield start, ray.get(ready)
            except RayError as error:
                raise HushError(str(error).strip().splitlines()[-1]) from None

    try:
        return _build(data, out, threads, on_progress, crew, {**options, "key": key, "value": value})
    finally:
        if started:
            ray.shutdown()


def _chained(folder: str, segment: int, start: int, end: int, threads: int) -> list[bytes]:
    return _native.chained(folder, segment, start, end, threads)

"""Builds whose longest steps run on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayError

from .. import HushError, _build, _native, _threads
from ._cluster import _cluster

LOOK = 0.2  # seconds between two checks for a cancellation while a build waits


def build(
    data: Any,
    *,
    out: str | os.PathLike[str],
    key: str | list[str] | None = None,
    value: str | list[str] | None = None,
    cpus: float = 1,
    address: str | None = None,
    threads: int | None = None,
    on_progress: Callable[[str, int, int | None, str], None] | None = None,
    **options: Any,
) -> str:
    """Builds a table in the folder `out`, which every node sees. Returns its epoch. The table equals that of `hushdb.build`, byte for byte.

    Records are read and laid out in this process. Tasks on the cluster compute everything that is made from the hint: pack columns, lifted
    hints, and hints that clients download. If the cluster has twice the processors of this process, tasks also compute key filters.
    Finished tasks are kept: an interrupted build resumes after them, with a cluster or without.

    cpus: the processors that a task reserves on its node, and its number of threads.
    address: the address of the cluster. If not given, one is started on this machine, and ends with the build.
    all others: as for `hushdb.build`.
    """
    started = _cluster(address, starting=threads or _threads())
    crew = _Tasks(cpus)
    try:
        return _build(data, out, threads, on_progress, crew, {**options, "key": key, "value": value}).epoch
    finally:
        crew.cancel()
        if started:
            ray.shutdown()


class _Tasks:
    """The tasks of a build that are in flight on the cluster."""

    def __init__(self, cpus: float) -> None:
        self._cpus, self._threads = cpus, max(1, int(cpus))
        self._work = ray.remote(num_cpus=cpus, max_retries=3)(_work)
        self._asked: dict[Any, int] = {}

    def places(self) -> int:
        return max(1, int(ray.cluster_resources().get("CPU", 1) // self._cpus))

    def ask(self, number: int, task: bytes) -> None:
        self._asked[self._work.remote(task, self._threads)] = number

    def next(self) -> tuple[int, list[bytes]] | None:
        ready, _ = ray.wait(list(self._asked), num_returns=1, timeout=LOOK)
        if not ready:
            return None
        number = self._asked.pop(ready[0])
        try:
            return number, ray.get(ready[0])
        except RayError as error:
            raise HushError(str(error).strip().splitlines()[-1]) from None

    def cancel(self) -> None:
        for task in self._asked:
            ray.cancel(task)


def _work(task: bytes, threads: int) -> list[bytes]:
    return _native.work(task, threads)

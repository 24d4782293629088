"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket

import ray
from ray.exceptions import RayError

from .. import HushError

NAMESPACE = "hushdb"
REACHED = 3.0  # seconds to connect before an address counts as unreachable: Ray itself tries for most of a minute


def _cluster(address: str | None, starting: int | None = None) -> bool:
    """Connects to the cluster at `address`, or starts one on this machine with `starting` processors. Returns whether it started one.
    Raises `HushError` if the cluster cannot be reached or used."""
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS") or ("auto" if starting is None else "local")
    # An existing cluster has its own settings. A cluster started here returns a part's reply inline, not through the object store.
    ours = {"include_dashboard": False, "num_cpus": starting, "_system_config": {"max_direct_call_object_size": 1 << 20}}
    own = ours if address == "local" else {}
    _reach(address)
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING, **own)
    except ConnectionError as error:
        told = "" if os.environ.get("RAY_AUTH_MODE") == "token" else "; one that is there wants its token: set RAY_AUTH_MODE=token"
        raise HushError(f"{_nobody(address)}{told} ({line(error)})") from None
    except (RayError, RuntimeError, ValueError, OSError) as error:
        raise HushError(f"the cluster at {address} cannot be used: {line(error)}") from None
    return address == "local"


def _nobody(address: str) -> str:
    return f"there is no cluster at {address}: start one with 'ray start --head', and name it"


def _reach(address: str) -> None:
    """Raises `HushError` if `address` is a host and a port, and nobody listens there."""
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED).close()
    except OSError as error:
        raise HushError(f"{_nobody(address)} ({error})") from None


def line(error: BaseException) -> str:
    """Returns the cause of an error of Ray in one line, without the traceback in its text."""
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    text = lines[-1] if lines else ""
    raised, colon, reason = text.partition(": ")
    # The last line of a traceback names a class of this package, which adds nothing to the reason.
    if colon and raised.startswith("hushdb.") and " " not in raised:
        return reason[:500]
    return f"{type(error).__name__}: {text}"[:500]

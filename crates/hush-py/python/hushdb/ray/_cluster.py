"""The cluster that this process is a part of."""

from __future__ import annotations

import logging
import os

import ray

from .. import HushError

NAMESPACE = "hushdb"


def _cluster(address: str | None, starting: int | None = None) -> bool:
    """Connects to the cluster, or starts one that has room for actors of so many processors: whether it did."""
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS") or ("auto" if starting is None else "local")
    # A cluster that is there has its own settings. In this one, what a part says comes with the call itself.
    ours = {"include_dashboard": False, "num_cpus": starting, "_system_config": {"max_direct_call_object_size": 1 << 20}}
    own = ours if address == "local" else {}
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING, **own)
    except ConnectionError as error:
        told = "" if os.environ.get("RAY_AUTH_MODE") == "token" else "; one that is there wants its token: set RAY_AUTH_MODE=token"
        raise HushError(f"there is no cluster at {address}: start one with 'ray start --head', and name it{told} ({error})") from None
    return address == "local"

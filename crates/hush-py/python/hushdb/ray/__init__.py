"""A table in parts on a Ray cluster: actors scan, a server of this process hands them batches and finishes.

    import hushdb.ray

    with hushdb.ray.serve("people.hush", parts=4, replicas=2) as service:
        print(service.connect().table().get("alice@example.org"))

Each actor opens its own part of the table from a folder that every node sees. What goes to actors are encrypted queries, what comes back
are ciphertexts; the server has no state, and there may be several (`head`, or `serve` once more). Ray starts actors, and starts them again
when they die. They belong to no server: on a cluster of yours they stay when it ends, until `stop`, or for `lease` seconds without any.
"""

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError("hushdb.ray needs Ray: pip install 'hushdb[ray]'") from error

from ._build import build
from ._head import Head
from ._service import Service, head, leases, serve, status, stop

__all__ = ["Head", "Service", "build", "head", "leases", "serve", "status", "stop"]

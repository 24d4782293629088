"""A table in parts on a Ray cluster. Actors scan the parts. A server in this process sends them batches and finishes the answers.

    import hushdb.ray

    with hushdb.ray.serve("people.hush", parts=4, replicas=2) as service:
        print(service.connect().table().get("alice@example.org"))

Each actor opens its own part of the table from a folder that every node sees. Actors receive encrypted queries and return ciphertexts.
The server has no state, and there may be several (`head`, or `serve` once more). Ray starts actors, and restarts them when they die. Actors
belong to no server: on an existing cluster they outlive a server, until `stop`, or until no server has renewed their `lease` for its time.
"""

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError("hushdb.ray needs Ray: pip install 'hushdb[ray]'") from error

from ._build import build
from ._head import Head
from ._service import Service, head, leases, serve, status, stop

__all__ = ["Head", "Service", "build", "head", "leases", "serve", "status", "stop"]

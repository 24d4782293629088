"""`python -m hushdb.ray`: a table in parts on a cluster, from a shell."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from ray.exceptions import RayError

from .. import HushError
from . import build, head, leases, serve, status, stop
from ._cluster import line
from ._lease import LEASE

END = 60.0  # seconds from a signal to the end of the process, at most: a server gives its requests half of them


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m hushdb.ray", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build a table, with what takes longest as tasks on a cluster")
    building.add_argument("input", metavar="INPUT", help="as 'hushdb build' takes it: a file or a URL")
    building.add_argument("--out", required=True, metavar="DIR", help="the folder of the table, which every node sees")
    building.add_argument("--key", action="append", metavar="COLUMN", help="a part of the key; look-ups are by position without one")
    building.add_argument("--value", action="append", metavar="COLUMN", help="a part of the value; all other columns if not given")
    building.add_argument("--cpus", type=float, default=1, help="that a task takes")
    serving = commands.add_parser("serve", help="put a table in parts on a cluster, or take up the parts that are there, and serve it until Ctrl-C")
    serving.add_argument("table", help="its folder, which every node sees, or its URL: s3://bucket/people")
    serving.add_argument("--parts", type=int, help="2 if there are no weights")
    serving.add_argument("--replicas", type=int, default=1, help="actors that have the same part")
    serving.add_argument("--weights", type=lambda text: [int(weight) for weight in text.split(",")], help="shares of parts: 2,2,1")
    serving.add_argument("--cpus", type=_of_parts(float), default=1, help="that an actor takes; of each part: 16,16,8")
    serving.add_argument("--gpus", type=_of_parts(float), default=0, help="what of a GPU an actor takes, at most 1; of each part: 1,1,0")
    serving.add_argument("--nodes", type=_of_parts(str), help="the resource of a node that an actor takes one of; of each part: large,large,small")
    serving.add_argument("--memory", type=int, metavar="BYTES", help="that an actor takes; as 'hushdb plan' reckons it if not given")
    serving.add_argument("--no-verify", dest="verify", action="store_false", help="the checksums of a folder are not checked")
    serving.add_argument("--cache", metavar="FOLDER", help="of each node, for what is fetched; the user's own if not given")
    serving.add_argument("--lease", type=float, default=LEASE, metavar="SECONDS", help="that parts live on without a server")
    serving.add_argument("--name", help="what clients call the table; the last part of where it is if not given")
    another = commands.add_parser("head", help="another server of a table that is on a cluster, until Ctrl-C")
    another.add_argument("name")
    for server in (serving, another):
        server.add_argument("--listen", default="127.0.0.1:7700", metavar="ADDRESS")
        server.add_argument("--timeout", type=float, default=10.0, help="seconds that a part may take for a batch")
        server.add_argument("--grace", type=float, default=10.0, help="seconds without a live replica of a part until the server is not ready")
    for name, command, example in (("build", building, "updatable"), ("serve", serving, "tokens=FILE"), ("serve", another, "tokens=FILE")):
        command.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=f"one of 'hushdb {name}': {example}")
    commands.add_parser("status", help="the parts of all tables on a cluster")
    commands.add_parser("stop", help="end the parts of a table").add_argument("name")
    for command in commands.choices.values():
        command.add_argument("--address", help="of the cluster; RAY_ADDRESS, or for serve and build one of this machine, if not given")
    return parser


def main() -> int:
    args = vars(parser().parse_args())
    try:
        return _run(args.pop("command"), args)
    except HushError as error:
        _say(f"error: {error}")
        return 2
    except RayError as error:
        _say(f"error: {line(error)}")
        return 2
    except KeyboardInterrupt:
        _say("interrupted; the same build goes on from what is done")
        return 130


def _run(command: str, args: dict[str, Any]) -> int:
    if command == "status":
        _status(args["address"])
        return 0
    if command == "stop":
        ended = stop(args["name"], args["address"])
        _print(f"{args['name']}: {ended} parts ended" if ended != 1 else f"{args['name']}: 1 part ended")
        return 0
    args.update(_option(text) for text in args.pop("option"))
    if command == "build":
        stages = _Stages()
        _print(build(args.pop("input"), on_progress=stages, **args))
        return 0
    running = serve(args.pop("table"), **args) if command == "serve" else head(args.pop("name"), **args)
    _say(f"listening on {running.url}")
    if not getattr(running, "ends_cluster", False):
        _say(f"the parts outlive this server: 'stop {running.name}' ends them, or {running.lease:.0f} s without any server")
    with running:
        _wait_for_signal()
        # The end of the block answers the requests in flight. If the process still runs after `END`, the log shows where it hangs.
        faulthandler.dump_traceback_later(END, exit=True)
    return 0


def _wait_for_signal() -> None:
    """Waits for Ctrl-C or a supervisor's SIGTERM. A second signal ends the process at once."""
    told, tell = socket.socketpair()
    tell.setblocking(False)
    # The kernel may give the signal to any thread of Ray, which would not wake `signal.pause` in this one.
    signal.set_wakeup_fd(tell.fileno())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    told.recv(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)


def _status(address: str | None) -> None:
    """Prints each table with its servers, then its parts."""
    parts, tables = status(address), leases(address)
    for table in tables:
        own = [part for part in parts if part["name"] == table["name"]]
        heads = ", ".join(table.get("heads", ())) or "no server"
        ends = table.get("error") or f"lease of {table['lease']:.0f} s, {table['left']:.0f} s left"
        _print(f"{table['name']}: {len(own)} parts, {heads}, {ends}")
        for part in own:
            where = part.get("error") or f"pid {part['pid']} on {part['node'][:12]}"
            epochs = ", ".join(f"{epoch[:12]} on {place}" for epoch, place in zip(part.get("epochs", ()), part.get("places", ())))
            _print(f"{table['name']}  part {part['part']}  replica {part['replica']}  {where}  {epochs}")
    if not tables:
        _print("there are no tables on this cluster")


def _say(line: str) -> None:
    """Writes a line to standard error. Ignores a closed pipe and a full disk: the work matters more than its log."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _print(result: object) -> None:
    """Writes a line to standard output. Ignores a closed pipe."""
    try:
        print(result, flush=True)
    except BrokenPipeError:
        # Python would flush the rest when it ends, and fail then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _of_parts(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns a reader of one value for all parts, or of one for each, separated by commas."""
    def read(text: str) -> Any:
        values = [kind(value) for value in text.split(",")]
        return values if len(values) > 1 else values[0]
    return read


class _Stages:
    """Progress of a build as lines of text: one when a stage begins, and one for each tenth of it."""

    def __init__(self) -> None:
        self._stage, self._told = "", 0

    def __call__(self, stage: str, done: int, total: int | None, unit: str) -> None:
        if unit == "note":
            _say(stage)
            return
        if stage != self._stage:
            self._stage, self._told = stage, 0
            _say(f"{stage}: {total} {unit}" if total else stage)
        tenths = 10 * done // total if total else 0
        if tenths > self._told:
            self._told = tenths
            _say(f"{stage}: {done} of {total} {unit}")


def _option(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    return name.replace("-", "_"), value if separator else True


if __name__ == "__main__":
    sys.exit(main())

"""Private look-ups: a server answers without learning which record it was.

    import hushdb

    with hushdb.connect("https://hush.example") as client:
        print(client.table("people").get("alice@example.org"))

`connect` asks a server, `open` a folder of this machine, `serve` starts a server in this process. `build` makes a table of a data frame
or a file, `plan` tells what tables records could have. Everything that blocks has a form with `_async` to await, and leaves other
threads of Python free.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _native
from ._errors import (
    ConnectionFailed, HushError, InputError, NoSuchTable, NotAllowed, OptionError, ServerBusy, TimedOut, Untrusted,
)
from ._frames import as_frame, as_stream, like

__all__ = [
    "Client", "ConnectionFailed", "HushError", "InputError", "NoSuchTable", "NotAllowed", "OptionError", "Plan", "Plot", "Server",
    "ServerBusy", "Table", "TableInfo", "TimedOut", "Untrusted", "build", "connect", "connect_async", "open", "plan", "serve",
]
__version__: str = _native.VERSION

Key = Union[str, bytes, "tuple[str | bytes, ...]", int]
"""Text, which is taken as UTF-8; bytes; a tuple of these for a key of several columns; in a table by position a number from 0."""

Value = Union[bytes, "dict[str, Any]"]
"""The bytes of a value; of a table whose values have several columns, a dictionary of them."""

Progress = Callable[[str, int, "int | None"], None]
"""Is called with what is done ("hint", "keys", "retry", ..), how much of it, and of how much if that is known."""


class TableInfo(NamedTuple):
    """What a server lists of a table."""

    name: str
    state: str
    """`resident`, or `loading` for a table whose look-ups have to wait."""
    protocol: str | None
    records: int | None


class Table:
    """A table that can be looked up. Threads may share it: their look-ups come one after another."""

    def __init__(self, native: _native.RemoteTable | _native.LocalTable) -> None:
        self._native = native
        self._fields = native.fields()

    def get(self, key: Key) -> Value | None:
        """The value of a key, or None if the table has no such key. The server does not learn which key it was."""
        return self.get_many([key])[0]

    def get_many(self, keys: Iterable[Key]) -> list[Value | None]:
        """The values of several keys, in their order, all of one epoch. The server learns how many there were."""
        found = self._native.get_many(list(keys))
        if self._fields is None:
            return list(found)
        return [None if value is None else json.loads(value) for value in found]

    async def get_async(self, key: Key) -> Value | None:
        """As `get`, to await."""
        return await asyncio.to_thread(self.get, key)

    async def get_many_async(self, keys: Iterable[Key]) -> list[Value | None]:
        """As `get_many`, to await."""
        return await asyncio.to_thread(self.get_many, list(keys))

    def lookup(self, keys: Any, *, text: bool = True) -> Any:
        """A frame with a row for each key: the columns of the key, and those of the value, null where there is no such record.

        `keys` is a series, an array or a frame of Polars, pandas or pyarrow, or anything else with `__arrow_c_stream__`; what comes back
        is a frame of the same library. A frame has as many columns as a key. Keys that are null are not looked up. A value of one column
        is called `value`: text, or bytes with `text=False`. Columns are numbers or booleans where all of what was found is, else text.
        """
        frame = as_frame(keys, "key")
        return like(keys, self._native.lookup(as_stream(frame), text))

    async def lookup_async(self, keys: Any, *, text: bool = True) -> Any:
        """As `lookup`, to await."""
        return await asyncio.to_thread(lambda: self.lookup(keys, text=text))

    @property
    def name(self) -> str | None:
        """Its name on the server; None of one in a folder."""
        return self._native.name() if isinstance(self._native, _native.RemoteTable) else None

    @property
    def fields(self) -> list[str] | None:
        """The columns of its values, if these have several."""
        return self._fields

    @property
    def facts(self) -> dict[str, Any]:
        """Protocol, parameter set, bits of security, records, epoch, whether it is by key, bytes of its hint."""
        return self._native.facts()

    @property
    def stats(self) -> dict[str, Any] | None:
        """What it has cost since it was opened: look-ups, bytes up and down, seconds by phase. None of one in a folder."""
        return self._native.stats() if isinstance(self._native, _native.RemoteTable) else None

    def __repr__(self) -> str:
        facts = self.facts
        return f"<hushdb.Table {self.name or ''}: {facts['records']} records, {facts['protocol']}>"


class Client:
    """A server. `connect` makes one."""

    def __init__(self, url: str, native: _native.Client) -> None:
        self.url = url
        self._open: _native.Client | None = native

    @property
    def _native(self) -> _native.Client:
        if self._open is None:
            raise OptionError("this client is closed: connect again")
        return self._open

    @property
    def tables(self) -> list[TableInfo]:
        """The tables, as they were when the server was asked."""
        return [TableInfo(*table) for table in self._native.tables()]

    def table(self, name: str | None = None) -> Table:
        """Opens a table: by name, or the only one. What a client keeps of it is fetched, unless it is in the cache."""
        return Table(self._native.table(name))

    async def table_async(self, name: str | None = None) -> Table:
        """As `table`, to await."""
        return await asyncio.to_thread(self.table, name)

    def close(self) -> None:
        """Lets its connections go. Tables that are open stay."""
        self._open = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<hushdb.Client {self.url}>"


def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: float | None = None,
    ca_cert: str | os.PathLike[str] | None = None,
    client_cert: str | os.PathLike[str] | None = None,
    client_key: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    relay: str | None = None,
    ohttp_keys: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    no_cache: bool = False,
    trust: str | None = None,
    epoch: str | None = None,
    allow_weak: str | None = None,
    max_hint: int | None = None,
    lookups_per_key: int | None = None,
    on_progress: Progress | None = None,
) -> Client:
    """Asks the server at `url` for its tables.

    token: with which the server knows this client; HUSHDB_TOKEN if not given.
    timeout: seconds to connect, and of silence of the server.
    ca_cert, client_cert, client_key, insecure: as of `hushdb get`: whom to trust, and who this client is.
    relay, ohttp_keys: ask through a relay, so that the server does not see who asks.
    cache, no_cache: the folder in which hints, evaluation keys and serials of signed tables are kept; the user's own if not given.
    trust, epoch, allow_weak, max_hint: which tables are accepted. trust is the public key of who must have signed the table under
        the name by which it is opened, or "KEY=NAME" if the server has it under another name.
    lookups_per_key: how many look-ups are made under the same evaluation keys before fresh ones are uploaded; 256 if not given.
    on_progress: is told of what takes long.
    """
    token = token if token is not None else os.environ.get("HUSHDB_TOKEN")
    native = _native.Client(
        url, token=token, timeout=timeout, ca_cert=ca_cert, client_cert=client_cert, client_key=client_key, insecure=insecure,
        relay=relay, ohttp_keys=ohttp_keys, cache=cache, no_cache=no_cache, trust=trust, epoch=epoch, allow_weak=allow_weak,
        max_hint=max_hint, lookups_per_key=lookups_per_key, on_progress=on_progress)
    return Client(url, native)


async def connect_async(url: str, **options: Any) -> Client:
    """As `connect`, to await."""
    return await asyncio.to_thread(lambda: connect(url, **options))


def open(path: str | os.PathLike[str], *, threads: int | None = None) -> Table:
    """A table in a folder of this machine, without a server. Queries are encrypted, answered and decrypted all the same."""
    return Table(_native.LocalTable(pathlib.Path(path), threads or _threads()))


def build(
    data: Any,
    *,
    out: str | os.PathLike[str],
    key: str | Sequence[str] | None = None,
    value: str | Sequence[str] | None = None,
    threads: int | None = None,
    on_progress: Callable[[str, int, int, str], None] | None = None,
    **options: Any,
) -> str:
    """Builds a table in the folder `out`. Returns its epoch.

    data: a frame of Polars, pandas, pyarrow or DuckDB, or anything else with `__arrow_c_stream__`, which is read once, batch by batch;
    or a path or a URL, as `hushdb build` takes them.
    key, value: columns; without a key, records are looked up by position; without a value, all other columns are.
    on_progress: is called with a stage, units done and in all, and the unit; then with "", more units; and with a line to read, "note".
    options: those of `hushdb build`, with underscores: protocol="simple", updatable=True, on_duplicate="last", force=True, ..
    """
    return _build(data, out, threads, on_progress, None, {**options, "key": key, "value": value})


def _build(
    data: Any,
    out: str | os.PathLike[str],
    threads: int | None,
    on_progress: Callable[[str, int, int, str], None] | None,
    crew: _native.Crew | None,
    options: dict[str, Any],
) -> str:
    data = data if isinstance(data, (str, os.PathLike)) else as_stream(as_frame(data, "value"))
    return _native.build(data, pathlib.Path(out), _options(options), threads or _threads(), on_progress, crew)


class Server:
    """A server in this process, on loopback. It ends with its `with`, by `stop`, or with the process."""

    def __init__(self, native: _native.Server) -> None:
        self._native = native

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._native.url

    def connect(self, **options: Any) -> Client:
        """A client of it."""
        return connect(self.url, **options)

    def stop(self) -> None:
        """Answers what is in flight, and ends."""
        self._native.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<hushdb.Server {self.url}>"


def serve(
    *paths: str | os.PathLike[str],
    tables: Mapping[str, str | os.PathLike[str]] | None = None,
    port: int = 0,
    threads: int | None = None,
    **options: Any,
) -> Server:
    """Serves tables in this process: folders by their own names, `tables` by those that it gives. On a free port of 127.0.0.1, if none
    is given. options: those of `hushdb serve`, with underscores, but for those about folders: listen="..", tokens=FILE, .."""
    named = [(pathlib.Path(path).resolve().name, pathlib.Path(path)) for path in paths]
    named += [(name, pathlib.Path(path)) for name, path in (tables or {}).items()]
    if not named:
        raise OptionError("which tables? name the folders that build made")
    given = _options({"listen": f"127.0.0.1:{port}", "client-share": 100, **options})
    return Server(_native.Server(named, given, threads or _threads()))


class Plot:
    """A picture, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


class Plan:
    """The tables that records could have, the best first, with what each costs: `polars.DataFrame(plan)`, `pyarrow.table(plan)`."""

    def __init__(self, native: _native.Plan) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.stream(False).__arrow_c_stream__(requested_schema)

    def all(self) -> Any:
        """Also those that others are better than in everything: a stream of Arrow."""
        return self._native.stream(True)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Plot | None:
        """Draws bytes against server time: to a file whose name ends with .svg or .png, or for a notebook."""
        if path is not None:
            self._native.draw(pathlib.Path(path), False)
            return None
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder) / "plan.svg"
            self._native.draw(drawn, False)
            return Plot(drawn.read_text())

    def __str__(self) -> str:
        return self._native.text(False)

    def __repr__(self) -> str:
        return str(self)


def plan(
    data: Any = None,
    *,
    key: str | Sequence[str] | bool | None = None,
    value: str | Sequence[str] | None = None,
    on_progress: Callable[[str, int, int, str], None] | None = None,
    **options: Any,
) -> Plan:
    """The tables that records could have: those of a frame, a path or a URL, as `build` takes them; or described by records=N and
    size=BYTES, or lengths=[P50, P99, MAX], with key=True if they have keys. options: those of `hushdb plan`, with underscores: goal=..,
    max_memory=.., protocol=.. . Times are those of this machine, which is measured once and then kept."""
    if data is None and key is True:
        key = "key"
    if isinstance(options.get("lengths"), (list, tuple)):
        options["lengths"] = ",".join(map(str, options["lengths"]))
    given = _options(options, key=key, value=value)
    if data is not None and not isinstance(data, (str, os.PathLike)):
        data = as_stream(as_frame(data, "value"))
    return Plan(_native.plan(data, given, on_progress))


def _options(options: Mapping[str, Any], **columns: Any) -> str:
    """Options of a command in JSON, by the names that they have there."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    named.update(columns)
    as_given = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in named.items() if value is not None}
    return json.dumps({name: list(value) if isinstance(value, tuple) else value for name, value in as_given.items()})


def _threads() -> int:
    """As many as this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1

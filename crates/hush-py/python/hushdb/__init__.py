"""Private look-ups: a server answers without learning which record it was.

    import hushdb

    with hushdb.connect("https://hush.example") as client:
        print(client.table("people").get("alice@example.org"))

`connect` asks a server, `open` reads a table in a local folder, and `serve` starts a server in this process. `build` makes a table from a
data frame or a file. `apply`, `compact` and `rollback` change a table, `push` uploads it to an object store, `inspect` describes it. `plan` compares
the tables that records could have. Every call that blocks leaves other threads of Python free, ends on Ctrl-C, and has an `_async` form to
await: cancelling the task cancels the call. `python -m hushdb` is the program `hushdb`.
"""

from __future__ import annotations

import datetime
import decimal
import logging
import os
import pathlib
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union

from . import _native
from ._awaited import awaited, given_up
from ._errors import (
    ConnectionFailed, HushError, InputError, NoSuchTable, NotAllowed, OptionError, ServerBusy, TimedOut, Untrusted, WrongType,
)
from ._frames import as_frame, as_input, as_stream, like
from ._options import options_json as _options, threads_here as _threads
from ._progress import Progress, teller
from ._shown import facts_html, size, table_html
from ._snapshot import (
    Snapshot, apply, apply_async, compact, compact_async, inspect, inspect_async, push, push_async, rollback, rollback_async,
)

__all__ = [
    "Client", "ConnectionFailed", "HushError", "InputError", "NoSuchTable", "NotAllowed", "OptionError", "Plan", "Plot", "Server",
    "ServerBusy", "Snapshot", "Table", "TableInfo", "TimedOut", "Untrusted", "WrongType", "apply", "apply_async", "build", "build_async",
    "compact", "compact_async", "connect", "connect_async", "inspect", "inspect_async", "open", "open_async", "plan", "plan_async",
    "push", "push_async", "rollback", "rollback_async", "serve", "serve_async",
]
__version__: str = _native.VERSION

Part = Union[str, bytes, bool, int, float, decimal.Decimal, datetime.date, datetime.time, uuid.UUID]
"""A column of a key, of the column's type. Text is accepted for every type."""

Key = Union[Part, "tuple[Part, ...]"]
"""A key: one column, or a tuple of all its columns. In a table by position, a whole number from 0."""

Value = Union[bytes, "dict[str, Any]"]
"""The bytes of a value. If values have several columns: a dictionary from a column's name to its value, of the column's type."""

Rows = Literal["at-or-below", "at-or-above", "prefix", "in-range"]
"""The rows of a sorted table that a look-up finds: the last at or before the key, the first at or behind it, those whose keys begin with
it, or the smallest range that has it. A row is a dictionary of all its columns; a prefix finds a dictionary of `rows`, and of `more`, whether
there may be further ones."""


class TableInfo(NamedTuple):
    """A table as a server lists it."""

    name: str
    state: str
    """The state of the table: `resident`, or `loading` while its look-ups have to wait."""
    protocol: str | None
    records: int | None


class Table:
    """A table that can be looked up. Threads may share it: their look-ups come one after another."""

    def __init__(self, native: _native.RemoteTable | _native.LocalTable) -> None:
        self._native = native
        self._fields = native.fields()

    def get(self, key: Key, *, rows: Rows | None = None) -> Value | None:
        """Returns the value of a key, or None if the table has no such key. The server does not learn which key it was. With `rows`, finds
        rows of a sorted table instead (`Rows`)."""
        return self.get_many([key], rows=rows)[0]

    def get_many(self, keys: Iterable[Key], *, max_in_flight: int | None = None, rows: Rows | None = None) -> list[Value | None]:
        """Returns the values of several keys, in the order of the keys, all from one epoch. The server learns how many there are. Look-ups
        are sent in requests of at most `max_in_flight` (64 if not given), one request after another. With `rows`, finds rows of a sorted
        table instead (`Rows`)."""
        return list(self._native.get_many(_keys(keys), max_in_flight, given_up.get(), rows))

    def prepare(self, count: int) -> int:
        """Prepares queries, so that up to `count` are ready and take less time when they are asked: in tables of simple, frodo and double.
        Each serves one look-up. Returns the number that is ready; together they take at most 256 MiB. 0 for a table in a folder."""
        return self._native.prepare(count) if isinstance(self._native, _native.RemoteTable) else 0

    async def prepare_async(self, count: int) -> int:
        """Prepares queries like `prepare`, to await."""
        return await awaited(lambda: self.prepare(count))

    async def get_async(self, key: Key, *, rows: Rows | None = None) -> Value | None:
        """Looks a record up like `get`, to await."""
        return await awaited(lambda: self.get(key, rows=rows))

    async def get_many_async(
        self, keys: Iterable[Key], *, max_in_flight: int | None = None, rows: Rows | None = None,
    ) -> list[Value | None]:
        """Looks records up like `get_many`, to await. After a cancellation, no further look-ups are sent."""
        keys = _keys(keys)
        return await awaited(lambda: self.get_many(keys, max_in_flight=max_in_flight, rows=rows))

    def lookup(self, keys: Any, *, text: bool = True, max_in_flight: int | None = None) -> Any:
        """Returns a frame with a row for each key: the columns of the key, and those of the value, null where there is no such record.

        `keys` is a series, an array or a frame of Polars, pandas or pyarrow, or anything else with `__arrow_c_stream__`. The result is a
        frame of the same library. A frame of keys has the columns of the key, of their types or as text. Null keys are not looked up.
        Columns of values keep the names and types of the records from which the table was built, even if nothing is found. With
        `text=False`, a single column of text is returned as bytes. An index of pandas is not a key, and is returned with its rows.
        """
        frame = as_frame(keys, self._native.key_name() or "key")
        return like(keys, frame, self._native.lookup(as_stream(frame), text, max_in_flight, given_up.get()))

    async def lookup_async(self, keys: Any, *, text: bool = True, max_in_flight: int | None = None) -> Any:
        """Looks columns up like `lookup`, to await."""
        return await awaited(lambda: self.lookup(keys, text=text, max_in_flight=max_in_flight))

    @property
    def name(self) -> str | None:
        """The name of the table on the server; None for a table in a folder."""
        return self._native.name() if isinstance(self._native, _native.RemoteTable) else None

    @property
    def fields(self) -> list[str] | None:
        """The names of the columns of a value; None if a value is plain bytes."""
        return self._fields

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the table: protocol, parameter set, bits of security, records, epoch, whether look-ups are by key, and the bytes of
        a query, an answer, the hint and the evaluation keys."""
        return self._native.facts()

    @property
    def stats(self) -> dict[str, Any] | None:
        """The cost of all finished calls since the table was opened: look-ups, bytes up and down, seconds by phase. None for a table in a
        folder."""
        return self._native.stats() if isinstance(self._native, _native.RemoteTable) else None

    def __repr__(self) -> str:
        facts = self.facts
        return f"<hushdb.Table {self.name or ''}: {facts['records']} records, {facts['protocol']}>"

    def _repr_html_(self) -> str:
        facts = self.facts
        return facts_html(self.name or "a table in a folder", [
            ("records", facts["records"]), ("looked up by", "key" if facts["by_key"] else "position"),
            ("protocol", f"{facts['protocol']} with {facts['preset']}, {facts['security_bits']:.0f} bits"), ("epoch", facts["epoch"]),
            ("columns", ", ".join(self.fields) if self.fields else None),
            ("a look-up sends", size(facts["query_bytes"])), ("a look-up gets", size(facts["answer_bytes"])),
            ("downloaded once", size(facts["hint_bytes"])), ("uploaded once", size(facts["key_bytes"]))])


class Client:
    """A connection to a server, made by `connect`."""

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
        """The tables of the server, as it listed them when `connect` asked."""
        return [TableInfo(**table) for table in self._native.tables()]

    def table(self, name: str | None = None) -> Table:
        """Opens a table: the one with this name, or the server's only one. Downloads its hint and dictionary unless the cache has them."""
        return Table(self._native.table(name, given_up.get()))

    async def table_async(self, name: str | None = None) -> Table:
        """Opens a table like `table`, to await."""
        return await awaited(lambda: self.table(name))

    def close(self) -> None:
        """Closes the connections of this client. Open tables stay usable."""
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
    attempts: int | None = None,
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

    token: the bearer token of this client; HUSHDB_TOKEN if not given.
    timeout: the most seconds for one call, including all its requests, retries and waits, and the downloads when a table is opened.
        If not given, a call ends when it takes 10 s to connect, or the server is silent for 120 s.
    attempts: how often a request is sent in all if it fails in a way that may pass; 5 if not given.
    ca_cert, client_cert, client_key, insecure: whom to trust, and who this client is, as for `hushdb get`.
    relay, ohttp_keys: ask through a relay, so that the server does not see who asks.
    cache, no_cache: the folder in which hints, evaluation keys and serials of signed tables are kept; the user's cache if not given.
    trust, epoch, allow_weak, max_hint: which tables are accepted. trust is the public key that must have signed the table under the
        name by which it is opened, or "KEY=NAME" if the server has the table under another name.
    lookups_per_key: the number of look-ups under the same evaluation keys before fresh ones are uploaded; 256 if not given.
    on_progress: a function of stage ("hint", "keys"), done, total or None, and unit, called while a call takes long; or a bar of tqdm.
    """
    token = token if token is not None else os.environ.get("HUSHDB_TOKEN") or None
    native = _native.Client(
        url, token=token, timeout=timeout, attempts=attempts, ca_cert=ca_cert, client_cert=client_cert, client_key=client_key, insecure=insecure,
        relay=relay, ohttp_keys=ohttp_keys, cache=cache, no_cache=no_cache, trust=trust, epoch=epoch, allow_weak=allow_weak,
        max_hint=max_hint, lookups_per_key=lookups_per_key, on_progress=teller(on_progress), cancel=given_up.get())
    return Client(url, native)


async def connect_async(url: str, **options: Any) -> Client:
    """Connects like `connect`, to await."""
    return await awaited(lambda: connect(url, **options))


def open(path: str | os.PathLike[str], *, threads: int | None = None) -> Table:
    """Opens a table in a local folder, without a server. Queries are encrypted, answered and decrypted as with a server."""
    return Table(_native.LocalTable(pathlib.Path(path), threads or _threads(), given_up.get()))


async def open_async(path: str | os.PathLike[str], *, threads: int | None = None) -> Table:
    """Opens a folder like `open`, to await."""
    return await awaited(lambda: open(path, threads=threads))


def build(
    data: Any,
    *,
    out: str | os.PathLike[str],
    key: str | Sequence[str] | None = None,
    value: str | Sequence[str] | None = None,
    threads: int | None = None,
    on_progress: Progress | None = None,
    **options: Any,
) -> Snapshot:
    """Builds a table in the folder `out`. Returns its description: the epoch, the sizes, and how much a client downloads.

    data: a frame of Polars, pandas, pyarrow or DuckDB, or anything else with `__arrow_c_stream__`, which is read once, batch by batch;
    or a path or a URL, as `hushdb build` takes them; or a list of paths and URLs of files with the same columns.
    key, value: names of columns. Without a key, records are looked up by position. Without a value, all other columns are the value.
    on_progress: a function of stage, amount done, total or None, and unit; or a bar of tqdm. The unit "note" marks a stage that is a line
        of text to show.
    options: the options of `hushdb build`, with underscores: protocol="simple", updatable=True, on_duplicate="last", force=True, ..
    """
    return _build(data, out, threads, on_progress, None, {**options, "key": key, "value": value})


def _build(
    data: Any,
    out: str | os.PathLike[str],
    threads: int | None,
    on_progress: Progress | None,
    crew: _native.Crew | None,
    options: dict[str, Any],
) -> Snapshot:
    if data is None:
        raise WrongType("build what? give a frame, a reader of batches, a path or a URL")
    return Snapshot(_native.build(
        as_input(data, options.get("key"), options.get("value")), pathlib.Path(out), _options(options), threads or _threads(), teller(on_progress), crew, given_up.get()))


async def build_async(data: Any, **options: Any) -> Snapshot:
    """Builds like `build`, to await. A cancelled build ends, and the next build resumes from the units that it finished."""
    return await awaited(lambda: build(data, **options))


class Server:
    """A server in this process, on loopback unless `listen` names another address. It ends with its `with` block, by `stop`, or with the
    process."""

    def __init__(self, native: _native.Server) -> None:
        self._native = native

    @property
    def url(self) -> str:
        """The URL on which the server listens."""
        return self._native.url

    def connect(self, **options: Any) -> Client:
        """Connects a client to this server. Takes the options of `hushdb.connect`."""
        return connect(self.url, **options)

    def stop(self) -> None:
        """Answers the requests in flight, and ends the server."""
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
    watch: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Server:
    """Serves tables in this process. Folders are served under their own names, `tables` under the names that are its keys.

    port: the port of 127.0.0.1; a free one if not given.
    watch: load a new build, or a new epoch of `apply` and `compact`, when it appears in a table's folder. If it cannot be served, the
        logger "hushdb" gets a warning, and the current epoch stays.
    options: the options of `hushdb serve`, with underscores, except those about folders: listen="..", tokens=FILE, ..
    """
    named = [(pathlib.Path(path).resolve().name, pathlib.Path(path)) for path in paths]
    named += [(name, pathlib.Path(path)) for name, path in (tables or {}).items()]
    if not named:
        raise OptionError("which tables? name the folders that build made")
    given = _options({"listen": f"127.0.0.1:{port}", "client-share": 100, **options})
    warn = logging.getLogger("hushdb").warning if watch else None
    return Server(_native.Server(named, given, threads or _threads(), warn))


async def serve_async(*paths: str | os.PathLike[str], **options: Any) -> Server:
    """Serves like `serve`, to await."""
    return await awaited(lambda: serve(*paths, **options))


class Plot:
    """A picture in SVG that a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


class Plan:
    """The tables that records could have, the best first, with the costs of each: `polars.DataFrame(plan)`, `pyarrow.table(plan)`."""

    def __init__(self, native: _native.Plan) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.stream(False).__arrow_c_stream__(requested_schema)

    def all(self) -> Any:
        """Returns an Arrow stream of all tables, including the ones that another table beats in every cost."""
        return self._native.stream(True)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Plot | None:
        """Draws bytes against server time, to a file whose name ends with .svg or .png. Without a path, returns a `Plot` for a notebook."""
        if path is not None:
            self._native.draw(pathlib.Path(path), False)
            return None
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder) / "plan.svg"
            self._native.draw(drawn, False)
            return Plot(drawn.read_text())

    def _repr_html_(self) -> str:
        columns = ["", "protocol", "parameter set", "up", "down", "once up", "once down", "server memory", "time", "queries/s", "security"]
        rows = self._native.rows()
        return table_html(columns, [
            ("chosen" if chosen else "", protocol, preset, *map(size, sizes), f"{seconds * 1e3:.1f} ms", f"{rate:.0f}", f"{bits:.0f} bits")
            for chosen, protocol, preset, sizes, seconds, rate, bits in rows])

    def __str__(self) -> str:
        return self._native.text(False)

    def __repr__(self) -> str:
        return str(self)


def plan(
    data: Any = None,
    *,
    key: str | Sequence[str] | bool | None = None,
    value: str | Sequence[str] | None = None,
    on_progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """Returns the tables that records could have. The records are a frame, a path or a URL, as `build` takes them; or they are described by
    records=N and size=BYTES, or lengths=[P50, P99, MAX], with key=True if they have keys. options: the options of `hushdb plan`, with
    underscores: goal=.., max_memory=.., protocol=.. . Times are for this machine, which is measured once; the measurement is kept."""
    if data is None and key is True:
        key = "key"
    if isinstance(options.get("lengths"), (list, tuple)):
        options["lengths"] = ",".join(map(str, options["lengths"]))
    given = _options(options, key=key, value=value)
    return Plan(_native.plan(as_input(data), given, teller(on_progress), given_up.get()))


async def plan_async(data: Any = None, **options: Any) -> Plan:
    """Plans like `plan`, to await."""
    return await awaited(lambda: plan(data, **options))


def _keys(keys: Iterable[Key]) -> list[Key]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise WrongType("several keys are a list of them: give one key to get")
    return list(keys)

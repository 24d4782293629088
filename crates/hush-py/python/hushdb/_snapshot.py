"""Tables in folders: their facts, changes of their records, and uploads to object stores."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from . import _native
from ._awaited import awaited, given_up
from ._errors import OptionError
from ._frames import as_input
from ._options import options_json, threads_here
from ._progress import Progress, teller
from ._shown import facts_html, size


class Snapshot:
    """A table in a folder, as it was when `build`, `apply`, `compact` or `inspect` returned this object."""

    def __init__(self, native: _native.Snapshot) -> None:
        self.path: pathlib.Path = pathlib.Path(native.path)
        """The folder of the table."""
        self.facts: dict[str, Any] = json.loads(native.facts)
        """Everything that `hushdb inspect --json` prints."""
        self.seconds: float | None = native.seconds
        """The seconds that the call took; None after `inspect`."""
        self._summary = native.summary

    @property
    def epoch(self) -> str:
        """The hash of the table's content, which clients pass to `connect(epoch=..)`."""
        return self.facts["epoch"]

    @property
    def protocol(self) -> str:
        return self.facts["protocol"]

    @property
    def preset(self) -> str:
        return self.facts["preset"]

    @property
    def security_bits(self) -> float:
        return self.facts["security_bits"]

    @property
    def records(self) -> int:
        return self.facts["records"]

    @property
    def payload_bytes(self) -> int:
        """The bytes of all values."""
        return self.facts["payload_bytes"]

    @property
    def disk_bytes(self) -> int:
        """The bytes of all files."""
        return sum(file["bytes"] for file in self.facts["files"])

    @property
    def server_bytes(self) -> int:
        """The bytes in the memory of a server, with the evaluation keys of one client. `Plan` counts in the same way."""
        return self.facts["server_bytes"]

    @property
    def download_bytes(self) -> int:
        """The bytes that a client downloads before its first look-up: the hint, and the dictionary of compressed values."""
        return self.facts["hint_bytes"] + ((self.facts["compression"] or {}).get("dictionary") or {}).get("bytes", 0)

    @property
    def upload_bytes(self) -> int:
        """The bytes that a client uploads before its first look-up: the evaluation keys; 0 if the protocol has none."""
        return self.facts["key_bytes"]

    @property
    def query_bytes(self) -> int:
        """The bytes that a look-up sends."""
        return self.facts["query_bytes"]

    @property
    def answer_bytes(self) -> int:
        """The bytes that a look-up receives."""
        return self.facts["answer_bytes"]

    @property
    def changes(self) -> dict[str, int] | None:
        """The number of changes since the base was made, and the number that fit; None if the table is not updatable."""
        return self.facts["changes"]

    def __str__(self) -> str:
        return self._summary.rstrip()

    def __repr__(self) -> str:
        return f"<hushdb.Snapshot {self.path}: {self.records} records, {self.protocol}, epoch {self.epoch[:16]}>"

    def _repr_html_(self) -> str:
        return facts_html(str(self.path), [
            ("records", self.records), ("protocol", f"{self.protocol} with {self.preset}, {self.security_bits:.0f} bits"),
            ("epoch", self.epoch), ("on disk", size(self.disk_bytes)), ("in a server's memory", size(self.server_bytes)),
            ("a look-up sends", size(self.query_bytes)), ("a look-up gets", size(self.answer_bytes)),
            ("a client downloads once", size(self.download_bytes)), ("a client uploads once", size(self.upload_bytes)),
            ("changes", f"{self.changes['changes']} of {self.changes['room']}" if self.changes else None),
            ("made in", f"{self.seconds:.1f} s" if self.seconds is not None else None)])


def inspect(path: str | os.PathLike[str], *, verify: str = "full") -> Snapshot:
    """Reads the facts of a table in a folder. verify: "full" checks every byte; "header" checks the header and the length of every file."""
    if verify not in ("full", "header"):
        raise OptionError(f'verify is "full" or "header", not {verify!r}')
    return Snapshot(_native.inspect(pathlib.Path(path), verify == "full", given_up.get()))


def apply(
    path: str | os.PathLike[str],
    changes: Any = None,
    *,
    delete: Any = None,
    key: str | Sequence[str] | None = None,
    threads: int | None = None,
    on_progress: Progress | None = None,
    **options: Any,
) -> Snapshot:
    """Changes records of a table that was built with updatable=True. The result is a new epoch, which servers that watch the folder load.

    changes: records that are new or have a new value, as `build` takes them: a frame, a reader, a path or a URL.
    delete: keys whose records are deleted: a list of keys, a series or a frame of the key columns, or a path.
    key: the columns of the key, or of the position; the columns of the table's key if not given.
    options: the options of `hushdb apply`, with underscores: on_duplicate="last", sign=FILE, ..
    """
    keys = None
    if isinstance(delete, (list, tuple)):
        keys, delete = [[_text(part) for part in (row if isinstance(row, tuple) else (row,))] for row in delete], None
    return Snapshot(_native.apply(
        pathlib.Path(path), as_input(changes, key, options.get("value")), as_input(delete, key), keys, options_json(options, key=key),
        threads or threads_here(), teller(on_progress), given_up.get()))


def _text(part: Any) -> str:
    return part.decode() if isinstance(part, bytes) else str(part)


def compact(
    path: str | os.PathLike[str], *, threads: int | None = None, on_progress: Progress | None = None, **options: Any,
) -> Snapshot:
    """Folds the changes of a table into a new base, which makes room for further changes. options: the options of `hushdb compact`, with
    underscores: changes=N, longest=BYTES, .."""
    return Snapshot(_native.compact(
        pathlib.Path(path), options_json(options), threads or threads_here(), teller(on_progress), given_up.get()))


def rollback(path: str | os.PathLike[str], to: str, *, on_progress: Progress | None = None, **options: Any) -> Snapshot:
    """Puts an epoch that `apply` and `compact` kept (keep_epochs=N) in the place of a table, in no time. The present one is kept in turn.

    to: the first digits of its hash, such as the `epoch` of the Snapshot that was the table then.
    options: sign=FILE, .., for a table that is signed.
    """
    return Snapshot(_native.rollback(pathlib.Path(path), options_json(options, to=to), teller(on_progress), given_up.get()))


def push(path: str | os.PathLike[str], url: str, *, resend: bool = False, on_progress: Progress | None = None) -> str:
    """Uploads a table to an object store (s3://, gs://, az://), from which servers fetch it. Returns its epoch. Only files that are not
    there are sent; `resend` sends all of them, which mends a table that is damaged there."""
    return _native.push(pathlib.Path(path), url, resend, teller(on_progress), given_up.get())[0]


async def inspect_async(path: str | os.PathLike[str], **options: Any) -> Snapshot:
    """Reads facts like `inspect`, to await."""
    return await awaited(lambda: inspect(path, **options))


async def apply_async(path: str | os.PathLike[str], changes: Any = None, **options: Any) -> Snapshot:
    """Changes records like `apply`, to await."""
    return await awaited(lambda: apply(path, changes, **options))


async def compact_async(path: str | os.PathLike[str], **options: Any) -> Snapshot:
    """Folds changes like `compact`, to await."""
    return await awaited(lambda: compact(path, **options))


async def rollback_async(path: str | os.PathLike[str], to: str, **options: Any) -> Snapshot:
    """Goes back like `rollback`, to await."""
    return await awaited(lambda: rollback(path, to, **options))


async def push_async(path: str | os.PathLike[str], url: str, **options: Any) -> str:
    """Uploads like `push`, to await."""
    return await awaited(lambda: push(path, url, **options))

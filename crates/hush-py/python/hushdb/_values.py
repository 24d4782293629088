"""Conversions between Python values and the keys and values of tables, by the types of their columns."""

from __future__ import annotations

import base64
import datetime
import decimal
import ipaddress
import json
import struct
import uuid
import zoneinfo
from collections.abc import Sequence
from typing import Any

from ._errors import WrongType

INTEGERS = ("int", "uint")
TEXTS = ("string", "large_string")
BYTES = (*TEXTS, "binary", "large_binary", "fixed_size_binary")


def key(given: Any, kinds: Sequence[str] | None, shown: str) -> int | tuple[bytes, ...]:
    """Returns the bytes of each column of a key. `kinds` are the types of the columns; without them, a whole number is a position. Raises
    `WrongType` for a key of another type or another number of columns; `shown` is the key's type in the message."""
    parts = given if isinstance(given, tuple) else (given,)
    if kinds is None:
        if hasattr(given, "__index__") and not isinstance(given, bool):
            return given.__index__()
        if not all(isinstance(part, (str, bytes)) for part in parts):
            raise WrongType(f"a position is a whole number from 0, and {type(given).__name__} was given")
        return tuple(part.encode() if isinstance(part, str) else part for part in parts)
    if len(parts) != len(kinds):
        plural = "" if len(parts) == 1 else "s"
        raise WrongType(f"a key of {len(parts)} column{plural} was given, and the table's key is {shown}")
    columns = [column(part, kind) for part, kind in zip(parts, kinds)]
    for part, made in zip(parts, columns):
        if made is None:
            raise WrongType(f"the table's key is {shown}, and {type(part).__name__} was given")
    return tuple(columns)  # type: ignore[arg-type]


def column(given: Any, kind: str) -> bytes | None:
    """Returns the bytes of a column of a key, or None if its type does not fit `kind`. Text fits every kind."""
    if hasattr(given, "item") and hasattr(given, "dtype"):  # a scalar of numpy
        given = given.item()
    fits = (lambda *kinds: kind == "any" or kind.startswith(kinds))
    text: str | None = None
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given) if fits(*BYTES) else None
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bool):
        text = str(given).lower() if fits("bool") else None
    elif isinstance(given, int):
        text = str(given) if fits(*INTEGERS, "decimal") else None
    elif isinstance(given, float):
        text = repr(given) if fits("float") else None
    elif isinstance(given, decimal.Decimal):
        text = format(given, "f") if fits("decimal") else None
    elif isinstance(given, datetime.datetime):
        if given.tzinfo is None:
            text = given.isoformat() if fits("timestamp") and "," not in kind else None
        elif kind == "any" or (fits("timestamp") and "," in kind):
            text = given.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat() + "Z"
    elif isinstance(given, datetime.date):
        text = given.isoformat() if fits("date") else None
    elif isinstance(given, datetime.time):
        text = given.isoformat() if fits("time32", "time64") and given.tzinfo is None else None
    elif isinstance(given, uuid.UUID):
        text = str(given) if fits("uuid") else None
    elif isinstance(given, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        text = str(given) if fits(*TEXTS) else None
    return None if text is None else text.encode()


def record(names: Sequence[str], kinds: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    """Returns the fields of a record, by name. A cell is text, bytes, None, or JSON as a tuple of one text."""
    return {name: field(cell, kind) for name, kind, cell in zip(names, kinds, cells)}


def field(cell: Any, kind: str) -> Any:
    if not isinstance(cell, tuple):
        return plain(cell, kind)
    if kind == "any":
        return json.loads(cell[0], parse_float=exact)
    if kind.startswith("{"):
        return nested(json.loads(cell[0], parse_float=decimal.Decimal), json.loads(kind))
    return plain(cell[0], kind)


def exact(text: str) -> float | decimal.Decimal:
    """Returns a number as a float if the float has the same decimal value, and as a `Decimal` otherwise."""
    number = float(text)
    return number if decimal.Decimal(repr(number)) == decimal.Decimal(text) else decimal.Decimal(text)


def plain(text: Any, kind: str) -> Any:
    """Returns a field of text as a value of its kind. Values that Python cannot hold stay text: times in nanoseconds, years from 10,000."""
    if not isinstance(text, str) or kind == "any" or kind.startswith(TEXTS):
        return text
    if kind.startswith(INTEGERS):
        return int(text)
    if kind.startswith("float"):
        narrow = {"float16": "e", "float32": "f"}.get(kind)
        return struct.unpack(narrow, struct.pack(narrow, float(text)))[0] if narrow else float(text)
    if kind.startswith("decimal"):
        return decimal.Decimal(text)
    if kind == "bool":
        return text == "true"
    if kind == "uuid":
        return uuid.UUID(text)
    try:
        if kind.startswith("date"):
            return datetime.date.fromisoformat(text)
        if "[ns" not in kind and kind.startswith("timestamp"):
            return timestamp(text, kind)
        if "[ns" not in kind and kind.startswith("time"):
            return datetime.time.fromisoformat(text)
    except (ValueError, OverflowError):
        pass
    return text


def timestamp(text: str, kind: str) -> datetime.datetime:
    if not text.endswith("Z"):
        return datetime.datetime.fromisoformat(text)
    utc = datetime.datetime.fromisoformat(text[:-1]).replace(tzinfo=datetime.timezone.utc)
    zone = kind.partition(",")[2].removesuffix("]")
    try:
        return utc if zone == "UTC" else utc.astimezone(zoneinfo.ZoneInfo(zone))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return utc


def nested(value: Any, kind: Any) -> Any:
    """Returns a part of a nested field, read from JSON, as a value of its kind."""
    if value is None:
        return None
    if isinstance(kind, str):
        if kind.startswith(("binary", "large_binary", "fixed_size_binary")):
            return base64.b64decode(value)
        return value if isinstance(value, bool) else plain(str(value), kind)
    ((name, parts),) = kind.items()
    if name in ("list", "large_list"):
        return [nested(one, parts[1]) for one in value]
    if name == "fixed_size_list":
        return [nested(one, parts[1][1]) for one in value]
    if name == "struct":
        return {member: nested(value.get(member), own) for member, own in parts}
    if name == "map":
        return {nested(own, parts[0][1]): nested(one, parts[1][1]) for own, one in value.items()}
    return nested(value, parts[1])

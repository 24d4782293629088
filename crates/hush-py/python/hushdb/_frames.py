"""Conversions between data frames of any library and streams of Arrow."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from typing import Any

from ._errors import OptionError, WrongType


def library(data: Any) -> str:
    """Returns the name of the package that defines an object's type."""
    return type(data).__module__.partition(".")[0]


def as_frame(data: Any, name: str) -> Any:
    """Returns a series or an array as a frame with one column called `name`, and a frame as it is. Refuses a list: `OptionError`."""
    if hasattr(data, "collect") and not hasattr(data, "__arrow_c_stream__"):
        return as_stream(data)
    if isinstance(data, (list, tuple)):
        raise OptionError("a list of keys goes to get_many; lookup takes a series, an array or a frame")
    if library(data) == "pyarrow":
        pyarrow = importlib.import_module("pyarrow")
        if isinstance(data, (pyarrow.Array, pyarrow.ChunkedArray)):
            return pyarrow.table({name: data})
    elif hasattr(data, "to_frame") and not hasattr(data, "columns"):
        named = getattr(data, "name", None)
        return data.to_frame(name=name if named is None or named == "" else named)
    return data


def as_stream(data: Any, *named: str | Sequence[str] | None) -> Any:
    """Returns an object with `__arrow_c_stream__`. An index of pandas becomes a column only if `named` has its name. Raises `WrongType`
    for an object that has no such stream."""
    names = {name for some in named if some is not None for name in ([some] if isinstance(some, str) else some)}
    if library(data) == "pandas" and hasattr(data, "columns"):
        pyarrow = importlib.import_module("pyarrow")
        levels = [level for level in data.index.names if level in names and level not in data.columns]
        return pyarrow.Table.from_pandas(data.reset_index(level=levels) if levels else data, preserve_index=False)
    if library(data) == "pyarrow" and hasattr(data, "drop_columns"):
        made = [name for name in data.column_names if re.fullmatch(r"__index_level_\d+__", name) and name not in names]
        return data.drop_columns(made) if made else data
    if hasattr(data, "__arrow_c_stream__"):
        return data
    for method in ("fetch_arrow_reader", "to_arrow_reader", "to_arrow_table", "to_arrow"):
        if hasattr(data, method):  # older versions of DuckDB and other libraries
            return getattr(data, method)()
    if hasattr(data, "collect"):
        raise WrongType(f"a {type(data).__name__} has no rows yet: give it with .collect()")
    raise WrongType(f"{library(data)}.{type(data).__name__} has no __arrow_c_stream__: give a frame of Polars, pandas, pyarrow or "
                      "DuckDB, a reader of batches, a path or a URL")


def as_input(data: Any, *named: str | Sequence[str] | None) -> Any:
    """Returns a source of records: a path or a URL, a list of them, or a stream of Arrow."""
    if data is None or isinstance(data, (str, os.PathLike)):
        return data
    if isinstance(data, (list, tuple)) and data and all(isinstance(one, (str, os.PathLike)) for one in data):
        return list(data)
    return as_stream(as_frame(data, "value"), *named)


def like(data: Any, frame: Any, stream: Any) -> Any:
    """Returns a stream as a frame of the library of `data`, or as it is for an unknown library. `frame` has the keys."""
    own = library(data)
    if own == "polars":
        return importlib.import_module("polars").DataFrame(stream)
    if own in ("pyarrow", "duckdb", "_duckdb"):
        return importlib.import_module("pyarrow").table(stream)
    if own == "pandas":
        return as_pandas(frame, importlib.import_module("pyarrow").table(stream))
    return stream


def as_pandas(frame: Any, found: Any) -> Any:
    """Returns `found` as a frame of pandas, with the keys and the index of `frame`. Types are nullable, so that missing values do not
    change them."""
    pandas, pyarrow = importlib.import_module("pandas"), importlib.import_module("pyarrow")
    nullable = {pyarrow.bool_(): pandas.BooleanDtype(), pyarrow.time64("ns"): pandas.ArrowDtype(pyarrow.time64("ns"))}
    for bits in (8, 16, 32, 64):
        for kind in ("Int", "UInt"):
            nullable[getattr(pyarrow, f"{kind.lower()}{bits}")()] = getattr(pandas, f"{kind}{bits}Dtype")()
    made = found.to_pandas(types_mapper=nullable.get)
    made.index = frame.index
    given = pyarrow.Table.from_pandas(frame, preserve_index=False).schema
    for name in frame.columns:
        if name in made.columns and given.field(str(name)).type == found.schema.field(str(name)).type:
            made[name] = frame[name]
    return made

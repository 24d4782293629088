"""Data frames of any library, as streams of Arrow and back."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ._errors import OptionError, WrongType


def library(data: Any) -> str:
    """The package that an object is of."""
    return type(data).__module__.partition(".")[0]


def as_frame(data: Any, name: str) -> Any:
    """A series, an array or a list as a frame with one column; a frame as it is."""
    if hasattr(data, "collect") and not hasattr(data, "__arrow_c_stream__"):
        return as_stream(data)
    if isinstance(data, (list, tuple)):
        raise OptionError("a list of keys goes to get_many; lookup takes a series, an array or a frame")
    if library(data) == "pyarrow":
        pyarrow = importlib.import_module("pyarrow")
        if isinstance(data, (pyarrow.Array, pyarrow.ChunkedArray)):
            return pyarrow.table({name: data})
    elif hasattr(data, "to_frame") and not hasattr(data, "columns"):
        return data.to_frame(getattr(data, "name", None) or name)
    return data


def as_stream(data: Any) -> Any:
    """An object with `__arrow_c_stream__`."""
    if hasattr(data, "__arrow_c_stream__"):
        return data
    for method in ("fetch_arrow_reader", "to_arrow_reader", "to_arrow_table", "to_arrow"):
        if hasattr(data, method):  # DuckDB and others of older days
            return getattr(data, method)()
    if hasattr(data, "collect"):
        raise WrongType(f"a {type(data).__name__} has no rows yet: give it with .collect()")
    raise WrongType(f"{library(data)}.{type(data).__name__} has no __arrow_c_stream__: give a frame of Polars, pandas, pyarrow or "
                      "DuckDB, a reader of batches, a path or a URL")


def as_input(data: Any) -> Any:
    """What records come from: a path or a URL, or a stream of Arrow."""
    if data is None or isinstance(data, (str, os.PathLike)):
        return data
    return as_stream(as_frame(data, "value"))


def like(data: Any, stream: Any) -> Any:
    """A stream as a frame of the library that `data` is of; as it is if there is no such."""
    own = library(data)
    if own == "polars":
        return importlib.import_module("polars").DataFrame(stream)
    if own in ("pyarrow", "duckdb", "_duckdb"):
        return importlib.import_module("pyarrow").table(stream)
    if own == "pandas":
        return importlib.import_module("pyarrow").table(stream).to_pandas()
    return stream

"""Options of commands, in the form that the program takes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ._errors import WrongType


def options_json(options: Mapping[str, Any], **columns: Any) -> str:
    """Returns the options of a command as JSON, under their names on the command line. `as_` stands for `as`, a keyword of Python."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in options.items()} | columns
    given = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in named.items() if value is not None}
    try:
        return json.dumps({name: list(value) if isinstance(value, tuple) else value for name, value in given.items()})
    except TypeError as error:
        raise WrongType(f"an option is text, a number, True, or a list of them: {error}") from None


def threads_here() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1

"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def size(count: float) -> str:
    """Returns a number of bytes as text, in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    return f"{count:.2f} TiB"


def facts_html(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """Returns an HTML table of names and values, without the rows whose value is None."""
    cells = "".join(f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
                    for name, value in rows if value is not None)
    return f"<table><caption style='text-align:left'>{escape(title)}</caption><tbody>{cells}</tbody></table>"


def table_html(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns an HTML table with a head."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

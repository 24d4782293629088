"""Progress of long calls, for a function or a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

from ._errors import WrongType

Told = Callable[[str, int, "int | None", str], None]

Progress = Union[Told, Any]
"""A function of a stage ("read", "hint", ..), the amount done, the total or None, and the unit ("bytes", ..). The unit "note" marks a stage
that is a line of text to show. Or a bar of tqdm, which shows the stages one after another."""


def teller(progress: Progress | None) -> Told | None:
    """Returns the function that a call reports to: `progress` itself, or one that drives a bar of tqdm."""
    if progress is None or not hasattr(progress, "set_description"):
        if progress is not None and not callable(progress):
            raise WrongType("on_progress is a function of a stage, done, total and unit, or a bar of tqdm")
        return progress

    def show(stage: str, done: int, total: int | None, unit: str) -> None:
        if unit == "note":
            progress.write(stage)
            return
        if progress.desc != f"{stage}: ":
            progress.reset()
            progress.unit, progress.unit_scale = (" B", True) if unit == "bytes" else (f" {unit}", False)
        progress.total = total
        progress.set_description(stage, refresh=False)
        progress.update(done - progress.n)
        progress.refresh()

    return show

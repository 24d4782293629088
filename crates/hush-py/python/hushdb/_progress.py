"""Progress of calls that take long, for a function or a bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

from ._errors import WrongType

Told = Callable[[str, int, "int | None", str], None]

Progress = Union[Told, Any]
"""A function that is called with a stage ("read", "hint", ..), how much of it is done, of how much if that is known, and what is counted
("bytes", ..). A line to read is a stage whose unit is "note". Or a bar of tqdm, which shows the stages one after another."""


def teller(progress: Progress | None) -> Told | None:
    """Returns the function that a call tells."""
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

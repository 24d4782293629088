"""Blocking calls as awaitables."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

from . import _native

T = TypeVar("T")

given_up: contextvars.ContextVar[_native.Cancel | None] = contextvars.ContextVar("hushdb_given_up", default=None)
"""The handle that cancels the call of this context; None if the call is not awaited."""


async def awaited(call: Callable[[], T]) -> T:
    """Runs `call` on another thread, and returns its result. Cancelling the task cancels the call: no further query is sent."""
    cancel, context = _native.Cancel(), contextvars.copy_context()
    context.run(given_up.set, cancel)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, context.run, call)
    except asyncio.CancelledError:
        cancel.cancel()
        raise

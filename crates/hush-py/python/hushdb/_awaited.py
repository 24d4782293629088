"""Calls that block, for those who await them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

from . import _native

T = TypeVar("T")

given_up: contextvars.ContextVar[_native.Cancel | None] = contextvars.ContextVar("hushdb_given_up", default=None)
"""The handle that gives up the call of this context, if somebody awaits the call."""


async def awaited(call: Callable[[], T]) -> T:
    """Does `call` on another thread. Where the task is cancelled, the call is given up: it makes no query more."""
    cancel, context = _native.Cancel(), contextvars.copy_context()
    context.run(given_up.set, cancel)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, context.run, call)
    except asyncio.CancelledError:
        cancel.cancel()
        raise

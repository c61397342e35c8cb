"""The thread for large requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

# A thread for the expensive steps of large requests: weighing, converting from JSON, splitting.
#
# A single thread, because it runs Python: several threads would not be faster, would need more memory, and
# would all delay the event loop.
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-large")


async def aside(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Return ``work(*arguments)``, run on the thread for large requests in call order. Raises its errors."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *arguments)

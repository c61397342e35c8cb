"""How many cores this process may use, and its one thread for large requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, TypeVarTuple

# One thread beside the event loop for what large requests take: weighing, converting from JSON, taking apart.
#
# One, since it is Python that runs there: several would not be done sooner together, would take memory together, and
# the event loop would wait for the interpreter behind each of them.
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-large")


async def aside(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Returns ``work(*arguments)``, run on the thread for large requests, in order of calls. Raises what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *arguments)


_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """Counts the cores, at least 1. A container's limit counts, as far as it can be seen; part of a core counts as
    none."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not to be had on every platform
        cores = os.cpu_count() or 1
    try:
        granted, period = quota.read_text().split()
        limit = int(granted) // int(period)
    except (OSError, ValueError):  # no cgroup, or no limit: "max 100000"
        return cores
    return max(1, min(cores, limit))

"""Tunes Python's garbage collector and the C library's allocator for long-running processes with many objects."""

from __future__ import annotations

import ctypes
import gc
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt's, in glibc
_THRESHOLDS = 50_000, 20, 100


def expect_imports() -> None:
    """Raise the collector's thresholds at the beginning of a process: modules are many objects that all stay, and with
    Python's own thresholds an eighth of the time of their import goes into looking through them in vain."""
    gc.set_threshold(*_THRESHOLDS)


def spare_the_garbage_collector() -> None:
    """Freeze what the start left behind for good, and raise the thresholds: a batch of traces makes many objects that
    are all needed; by Python's own thresholds a twentieth of the time goes into looking through them in vain."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def collect_recent() -> None:
    """Free recent objects that refer to each other. gRPC leaves half a dozen with each call, and by the thresholds
    above fifty thousand would pile up. Takes some milliseconds."""
    gc.collect(1)


def give_memory_back() -> None:
    """Make glibc return large blocks to the system when they are freed, and keep few heaps for the threads of gRPC and
    ours. By itself it keeps for each thread what a large request took there: after a burst of those some 300 MB. Does
    nothing without glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 1 << 20)
        mallopt(_TRIM_THRESHOLD, 16 << 20)

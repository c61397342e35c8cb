"""Tuning of Python's garbage collector and the C allocator for long-running processes."""

from __future__ import annotations

import ctypes
import gc
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt's, in glibc
_THRESHOLDS = 50_000, 20, 100


def expect_imports() -> None:
    gc.set_threshold(*_THRESHOLDS)


def spare_the_garbage_collector() -> None:
    """Freeze start-up objects and raise the garbage collector's thresholds, for batches with many live objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def collect_recent() -> None:
    """Free recent reference cycles, such as those of gRPC calls. Takes some milliseconds."""
    gc.collect(1)


def give_memory_back() -> None:
    """Make glibc return large freed blocks and use few heaps. No effect without glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 1 << 20)
        mallopt(_TRIM_THRESHOLD, 16 << 20)

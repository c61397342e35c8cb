"""Tunes Python's garbage collector and the C library's allocator for long-running processes with many objects."""

from __future__ import annotations

import ctypes
import gc
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt's, in glibc
_THRESHOLDS = 50_000, 20, 100


def expect_imports() -> None:
    """Raise the garbage collector's thresholds during imports, whose objects stay. With the defaults, an eighth of the
    import time is wasted.
    """
    gc.set_threshold(*_THRESHOLDS)


def spare_the_garbage_collector() -> None:
    """Freeze start-up objects and raise the garbage collector's thresholds, because batches make many live objects.
    With the defaults, a twentieth of the time is wasted.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def collect_recent() -> None:
    """Free recent objects that refer to each other. gRPC leaves half a dozen with each call, and by the thresholds
    above fifty thousand would pile up. Takes some milliseconds."""
    gc.collect(1)


def give_memory_back() -> None:
    """Make glibc return large freed blocks and use few heaps. Otherwise each thread keeps memory after large requests,
    some 300 MB. No effect without glibc.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 1 << 20)
        mallopt(_TRIM_THRESHOLD, 16 << 20)

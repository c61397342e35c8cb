"""A real memory limit by control group, where permitted."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_ADDRESSES = 8
"""Ratio of mapped memory to RAM."""


@contextlib.contextmanager
def limited(pid: int, size: int, name: str) -> Iterator[str]:
    """Limit a process's memory; yield the mechanism. Fallback: address space of eight times ``size``."""
    folder = (_V1 if _V1.is_dir() else _V2) / name
    limit = folder / ("memory.limit_in_bytes" if _V1.is_dir() else "memory.max")
    try:
        folder.mkdir()
        limit.write_text(str(size))
        (folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        resource.prlimit(pid, resource.RLIMIT_AS, (size * _ADDRESSES, size * _ADDRESSES))
        yield "RLIMIT_AS"
        return
    try:
        yield f"cgroup {limit.name}"
    finally:
        for _ in range(100):  # a group can be removed only after its last process has ended
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.05)

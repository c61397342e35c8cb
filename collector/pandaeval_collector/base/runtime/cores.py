"""How many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """Counts the cores, at least 1. What a container is limited to counts, as far as it can be seen; part of a core
    counts as none."""
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

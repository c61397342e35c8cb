"""Gauges of a running collector."""

from __future__ import annotations

import mmap
import sys

import pytest

from pandaeval_collector.pipeline.accounting import resident_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
def test_resident_bytes_grow_with_allocated_memory() -> None:
    before = resident_bytes()
    with mmap.mmap(-1, 64_000_000) as held:  # memory that is new to the process
        held.write(b"x" * 64_000_000)
        assert 50_000_000 < resident_bytes() - before < 150_000_000

"""Gauges of a running collector."""

from __future__ import annotations

import sys

import pytest
from pandaeval_collector.pipeline.accounting import resident_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
def test_resident_memory_follows_what_is_held() -> None:
    before = resident_bytes()
    held = bytearray(b"x" * 64_000_000)
    assert 50_000_000 < resident_bytes() - before < 150_000_000
    assert len(held) == 64_000_000

"""Clears the encoding cache before each test."""

from __future__ import annotations

import pytest

from pandaeval_collector.exporters import _evaluation_spans, _fields, _span_summary, encode, prometheus


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    for module in (_fields, _evaluation_spans, _span_summary, encode, prometheus):
        for held in vars(module).values():
            if hasattr(held, "cache_clear"):
                held.cache_clear()

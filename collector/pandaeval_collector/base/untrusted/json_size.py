"""Memory of JSON as Python objects."""

from __future__ import annotations


def parsed_size(body: bytes) -> int:
    """Estimate the memory of ``body`` as Python objects, at least half of the real size."""
    return 3 * len(body) + 100 * body.count(b"[") + 500 * body.count(b"{") + 90 * body.count(b",")

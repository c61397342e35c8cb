"""What JSON takes as Python objects, before it is parsed."""

from __future__ import annotations


def parsed_size(body: bytes) -> int:
    """Estimate the memory that ``body`` takes as Python objects: measured, 15 times its length for usual traces, and
    never less than half of what nested or empty values, made to take much, really take."""
    return 3 * len(body) + 100 * body.count(b"[") + 500 * body.count(b"{") + 90 * body.count(b",")

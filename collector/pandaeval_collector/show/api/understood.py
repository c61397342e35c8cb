"""A trace from its spans, as people look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_collector.show.report.detail import detail
from pandaeval_collector.show.report.inspection import describe
from pandaeval_collector.show.report.text import clean_json

_ROOM = 400_000
"""Characters for all texts of a trace together."""


def understood(parts: Sequence[Part]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Returns the description of a trace that `inspect` prints, and its waterfall; ``(None, None)`` without spans."""
    trace = rebuilt(parts).trace if parts else None
    return (None, None) if trace is None else (plain(describe(trace)), plain(detail(trace, _ROOM)))


def drawn(parts: Sequence[Part]) -> dict[str, Any] | None:
    """Returns the waterfall of a trace alone; ``None`` without spans."""
    trace = rebuilt(parts).trace if parts else None
    return None if trace is None else detail(trace, _ROOM)


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Returns a JSON-ready copy, without characters that hide or reorder what stands beside them."""
    held: dict[str, Any] = orjson.loads(clean_json(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)))
    return held

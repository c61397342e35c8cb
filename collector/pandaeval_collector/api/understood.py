"""A trace from its spans, as people look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from pandaeval_collector.line.reading import Part, rebuilt
from pandaeval_collector.report.detail import detail
from pandaeval_collector.report.inspection import describe
from pandaeval_collector.report.text import clean_json

_ROOM = 400_000
"""Characters for all texts of a trace together."""


def understood(parts: Sequence[Part]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What `inspect` tells of a trace, and the rows of its waterfall; ``(None, None)`` without spans."""
    if not parts:
        return None, None
    trace = rebuilt(parts).trace
    if trace is None:
        return None, None
    return _plain(describe(trace)), _plain(detail(trace, _ROOM))


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """JSON-ready, with no character that hides or reorders what stands beside it."""
    held: dict[str, Any] = orjson.loads(clean_json(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)))
    return held

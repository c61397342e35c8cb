"""A report from a store: what it holds of traces and their results, as the page needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GONE = "its spans are no longer kept (store.retention, store.keep_bytes, store.keep_content)"


def without_spans(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`pandaeval_collector.show.report.detail.detail` makes of a trace whose spans are gone. ``facts``: what
    lists show of it."""
    texts = [facts[key] for key in ("in", "out") if key in facts]
    sides = [texts.index(facts[key]) if key in facts else None for key in ("in", "out")]
    return {
        "turns": [sides],
        "more_turns": 0,
        "error": None,
        "spans": [],
        "left_out": facts.get("spans", 0),
        "ends_in_tool_call": False,
        "calls": [],
        "texts": texts,
        "notes": [_GONE],
        "dialects": [],
        "models": [],
    }

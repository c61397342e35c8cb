"""A session's score in words, where the score alone would say more than is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pandaeval_collector.scoring.registry import registry

INLINE = "inline"
"""``metadata.basis`` of a session's score that rests on metrics without a model."""
_SAID = {"problem_found": "problem found", "no_problem_found": "no problem found"}


def is_inline(metadata: Mapping[str, Any] | None) -> bool:
    """Whether a session's score rests on metrics without a model alone."""
    return (metadata or {}).get("basis") == INLINE


def verdict(label: str | None) -> str:
    """What such a score says, in a word or three."""
    return _SAID.get(label or "", (label or "").replace("_", " "))


def spelled_out(label: str | None, signals: int, coverage: float) -> str:
    """What such a score says and does not say. ``signals``: how many metrics without a model spoke of the session, 0 if
    that is not known; ``coverage``: share, 0..1, of the signals that a judged session would have."""
    by = f"{signals} metric{'' if signals == 1 else 's'} without a model" if signals else "metrics without a model"
    some = f" ({coverage:.0%} of a judged score)" if coverage < 1.0 else ""
    return f"{verdict(label)} by {by}{some}; task success not judged"


def inline_signals(key: str, scored: Collection[str], modules: tuple[str, ...] = ()) -> int:
    """How many of the metrics that ``scored`` (by name) are signals without a model of the session metric ``key``."""
    known = registry(modules)
    if key not in known:
        return 0
    inline = {metric.name for metric in known.values() if metric.level == "trace" and metric.kind != "llm"}
    return len(inline & set(known[key].signals) & set(scored))

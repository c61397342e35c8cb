"""Results as pages and tables need them: a short form for lists, and all of it for the trace or session that is looked
at."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.base.result import EXCUSED, is_verdict
from pandaeval_collector.base.untrusted.printable import clean, excerpt
from pandaeval_collector.show.report.text import pruned

_SHORT_REASON, _MAX_SIGNALS = 240, 2000
_SHOWN_ELSEWHERE = ("threshold", "success", "inclusion_probability", "per_trace_signals")


@dataclass(frozen=True, slots=True)
class ShownResult:
    """One metric's result about one unit, JSON-ready. ``short``: what lists show; ``full``: what only its own trace or
    session shows."""

    short: dict[str, Any]
    full: dict[str, Any]


def signal_of(said: Mapping[str, Any]) -> float | None:
    """Returns the score of a result's JSON object as sessions see it (coherence on its calibrated scale); ``None``
    where it has none, or no verdict, or is excused."""
    ranks = said["outcome"] == "scored" and is_verdict(said) and said.get("label") != EXCUSED
    return float(said["metadata"].get("calibrated", said["score"])) if ranks else None


def shown(said: Mapping[str, Any], brief: bool = False) -> ShownResult:
    """Returns a result's JSON object (:meth:`Result.to_dict`) in this form. ``brief``: without metadata, for lists."""
    short = {
        "metric": f"{said['level']}.{said['metric']}",
        "outcome": said["outcome"],
        "score": said["score"],
        "signal": signal_of(said),
        "success": said["success"],
        "label": excerpt(said["label"], 60),
        "why": said["why"],
        "reason": excerpt(said["reason"], _SHORT_REASON),
    }
    metadata, by = {} if brief else said["metadata"], said["evaluator"]
    full = {
        "reason": clean(said["reason"]),
        "raw": said["raw"],
        "scale": said["scale"],
        "threshold": said["threshold"],
        "coverage": said["coverage"],
        "by": by["kind"],
        "model": by["model"],
        "version": by["version"],
        "trigger": said["trigger"],
        "final": said["final"],
        "cost": said["cost_usd"],
        "tokens": said["tokens"],
        "span": said["span_id"],
        "spans": said.get("span_ids"),  # results of older releases have none
        "metadata": {key: pruned(held) for key, held in metadata.items() if key not in _SHOWN_ELSEWHERE},
        "id": said["id"],
    }
    if said["level"] == "session":
        signals = metadata.get("per_trace_signals") or {}  # by trace id, what each gave to its session's score
        full["risks"] = dict(itertools.islice(signals.items(), _MAX_SIGNALS))
    return ShownResult(_present(short), _present(full))


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in facts.items() if held is not None and held != [] and held != {}}

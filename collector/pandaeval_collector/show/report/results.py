"""Results as the page needs them: a short form for lists, and all of it for the trace or session that is looked at."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.base.result import Result, is_verdict
from pandaeval_collector.base.untrusted.printable import clean, excerpt
from pandaeval_collector.show.report.text import pruned

_SHORT_REASON, _MAX_SIGNALS = 240, 2000
_SHOWN_ELSEWHERE = ("threshold", "success", "inclusion_probability", "per_trace_signals")


@dataclass(slots=True)
class ShownResult:
    """The newest revision of one metric's result about one unit, and what the older ones said. ``key``: the metric's,
    and the unit's id where a trace has several (turns); ``unit``: the unit's id."""

    key: str
    unit: str
    short: dict[str, Any]
    full: dict[str, Any]
    revision: int
    older: list[float | None] = field(default_factory=list)

    @property
    def signal(self) -> float | None:
        """The score as sessions see it (coherence on its calibrated scale); ``None`` if there is none."""
        value = self.short.get("signal")
        return None if value is None else float(value)

    @property
    def failed(self) -> bool:
        return self.short.get("success") is False


def shown(result: Result) -> ShownResult:
    """Returns a result in the page's form."""
    return shown_object(result.to_dict(), result.unit.id)


def shown_object(said: Mapping[str, Any], unit_id: str, brief: bool = False) -> ShownResult:
    """Returns a result's JSON object (:meth:`Result.to_dict`) in the page's form. ``unit_id``: what it is about;
    ``brief``: without metadata, for lists."""
    made = _short(said)
    whole = unit_id in (said["trace_id"], said["session_id"])
    key = made["metric"] if whole else f"{made['metric']} {unit_id}"
    return ShownResult(str(key), unit_id, made, _full(said, brief), said["revision"])


def signal_of(said: Mapping[str, Any]) -> float | None:
    """Returns the score of a result's JSON object as sessions see it; ``None`` where it has none, or no verdict."""
    ranks = said["outcome"] == "scored" and is_verdict(said)
    return float(said["metadata"].get("calibrated", said["score"])) if ranks else None


def _short(said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a result that lists show. ``signal``: the score as sessions see it."""
    return _present(
        {
            "metric": f"{said['level']}.{said['metric']}",
            "outcome": said["outcome"],
            "score": said["score"],
            "signal": signal_of(said),
            "success": said["success"],
            "label": excerpt(said["label"], 60),
            "why": said["why"],
            "reason": excerpt(said["reason"], _SHORT_REASON),
        }
    )


def _full(said: Mapping[str, Any], brief: bool) -> dict[str, Any]:
    """Returns the fields of a result that only its own trace or session shows."""
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
    return _present(full)


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in facts.items() if held is not None and held != [] and held != {}}

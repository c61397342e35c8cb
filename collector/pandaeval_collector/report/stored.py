"""A report from a store: what it holds of traces and their results, as the page needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandaeval_collector.report.results import ShownResult
from pandaeval_collector.report.text import pruned
from pandaeval_collector.untrusted.excerpt import clean, excerpt

_SHORT_REASON, _LONG_REASON, _MAX_SIGNALS = 240, 4000, 2000
_SHOWN_ELSEWHERE = ("threshold", "success", "inclusion_probability", "per_trace_signals")
_GONE = "its spans are no longer kept (store.retention, store.keep_bytes, store.keep_content)"


def shown_object(body: Mapping[str, Any]) -> ShownResult:
    """The JSON object of a result, for the page. It does not name the spans that the reason speaks of."""
    level, metadata = str(body["level"]), body.get("metadata") or {}
    reason, evaluator = str(body.get("reason") or ""), body.get("evaluator") or {}
    outcome, score = body["outcome"], body.get("score")
    short = {
        "metric": f"{level}.{body['metric']}",
        "outcome": outcome,
        "score": score,
        "signal": metadata.get("calibrated", score) if outcome == "scored" else None,
        "success": body.get("success"),
        "label": excerpt(body.get("label"), 60),
        "why": body.get("why"),
        "reason": excerpt(reason, _SHORT_REASON),
    }
    full = {
        "reason": clean(reason[:_LONG_REASON]),
        "by": evaluator.get("kind"),
        "model": evaluator.get("model"),
        "version": evaluator.get("version"),
        "cost": body.get("cost_usd"),
        "span": body.get("span_id"),
        "metadata": {key: pruned(held) for key, held in metadata.items() if key not in _SHOWN_ELSEWHERE},
        **{key: body.get(key) for key in ("raw", "scale", "threshold", "coverage", "trigger", "final", "tokens", "id")},
    }
    if level == "session":
        signals = metadata.get("per_trace_signals") or {}
        full["risks"] = dict(list(signals.items())[:_MAX_SIGNALS])
    unit = str((body.get("session_id") if level == "session" else body.get("trace_id")) or "")
    return ShownResult(str(short["metric"]), unit, _present(short), _present(full), int(body.get("revision") or 1))


def without_spans(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`pandaeval_collector.report.detail.detail` makes of a trace whose spans are gone. ``facts``: what
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


def _present(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in facts.items() if held is not None and held != [] and held != {}}

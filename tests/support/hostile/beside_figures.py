"""Figures of normal traffic beside hostile traces, and their limits."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOST_P99_S, MOST_LATER_S = 1.0, 10.0


def percentile(values: Sequence[float], share: float) -> float | None:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


def answers(latencies_s: Sequence[float]) -> dict[str, Any]:
    """Return the waiting times of requests."""
    p50, p99 = (percentile(latencies_s, share) for share in (0.5, 0.99))
    return {"requests": len(latencies_s), "p50_s": _rounded(p50), "p99_s": _rounded(p99)}


def decisions(
    alone: Mapping[bytes, float], beside: Mapping[bytes, float], decided: Mapping[bytes, float]
) -> dict[str, Any]:
    """Return how many traces were decided, and when. ``later_s``: longest delay over the median alone."""
    before, meanwhile = (
        [max(0.0, decided[id_] - at) for id_, at in sent.items() if id_ in decided] for sent in (alone, beside)
    )
    usual = statistics.median(before) if before else 0.0
    sent = {**alone, **beside}
    return {
        "traces": len(sent),
        "decided": len(before) + len(meanwhile) - len(alone.keys() & beside.keys() & decided.keys()),
        "alone_s": _rounded(usual),
        "p50_s": _rounded(percentile(meanwhile, 0.5)),
        "later_s": _rounded(max(0.0, max(meanwhile) - usual)) if meanwhile else None,
    }


def outcomes(ids: Iterable[str], results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return outcomes of hostile traces. ``without``: traces without score or reason."""
    counts: dict[str, Counter[str]] = {id_: Counter() for id_ in ids}
    for result in results:
        if (
            result["level"] == "trace"
            and result["trace_id"] in counts
            and (result.get("score") is not None or result["reason"])
        ):
            counts[result["trace_id"]][" ".join(filter(None, (result["outcome"], result.get("why"))))] += 1
    total: Counter[str] = sum(counts.values(), Counter())
    return {"traces": len(counts), "without": sum(not each for each in counts.values()), "outcomes": dict(total)}


def problems(trial: Mapping[str, Any]) -> list[str]:
    """Return the exceeded limits of a trial."""
    p99, decided, hostile = trial["beside"]["p99_s"], trial["decisions"], trial["hostile"]
    wrong = []
    if p99 is None or p99 > MOST_P99_S:
        wrong.append(f"the 99th percentile of ordinary answers was {p99} s")
    if decided["later_s"] is None or decided["later_s"] > MOST_LATER_S:
        wrong.append(f"a decision came {decided['later_s']} s later than alone")
    if decided["decided"] < decided["traces"]:
        wrong.append(f"{decided['traces'] - decided['decided']} ordinary traces are not decided")
    if hostile["without"]:
        wrong.append(f"{hostile['without']} of {hostile['traces']} hostile traces have no result")
    if trial["restarts"]:
        wrong.append(f"the front ended {trial['restarts']} times")
    return wrong + [f"an ordinary request was refused: {each}" for each in trial["refused"][:3]]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

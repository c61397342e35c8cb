"""Prepares the trace results of a session for the session formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pandaeval_collector.scoring.metric import SessionContext, SessionView, TraceSummary

KINDS = ("confidence", "loop_detection", "tool_correctness", "coherence")
JUDGED = ("confidence", "tool_correctness")
RECOVERED_VALUE = 0.5
NOT_EXPECTED = frozenset({"no_content", "not_sampled"})
ENOUGH = 0.5
"""Minimum share of traces with a signal of a kind, among the traces that expect this kind."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The completeness of a session's signals.

    ``share``: obtained / expected, 1.0 if none is expected. Without a judge, our own signals count too, and the judged
    kinds are missing in every trace. ``thin``: kinds obtained too rarely. ``assumed``: some signal is assumed.
    """

    share: float
    thin: tuple[str, ...]
    expected: int
    assumed: bool


def scored_share(session: SessionView, context: SessionContext) -> float:
    names = {*KINDS, *context.extra_signals} - {*JUDGED}
    found = [signal for trace in session.traces for name, signal in trace.signals.items() if name in names]
    apply = [each for each in found if each.outcome != "assumed" and each.why not in NOT_EXPECTED]
    return sum(each.outcome == "scored" for each in apply) / len(apply) if apply else 1.0


def failures(session: SessionView, names: Iterable[str]) -> dict[str, int]:
    """Return the number of failed traces by metric, highest first, without recovered calls."""
    recovered = _recovered(session)
    counted: Counter[str] = Counter()
    for trace in session.traces:
        failed = {name for name in names if (signal := trace.signals.get(name)) is not None and signal.said}
        if trace.crashed and "response" in names:
            failed.add("response")
        if trace.trace_id in recovered:
            failed.discard("response")
        counted.update(failed)
    return dict(counted.most_common())


def session_signals(session: SessionView, context: SessionContext) -> list[dict[str, float]]:
    """Return the signals of each trace.

    If a failed tool works in a later trace, ``response`` is at least 0.5. If a later trace answers the call, it is 1.
    """
    found = [signals_of(trace, context) for trace in session.traces]
    recovered = _recovered(session)
    for trace, signals in zip(session.traces, found, strict=True):
        if trace.trace_id in recovered and "response" in signals:
            least = 1.0 if trace.signals["response"].open else RECOVERED_VALUE
            signals["response"] = max(signals["response"], least)
    return found


def _recovered(session: SessionView) -> set[str]:
    recovered: set[str] = set()
    done: set[str] = set()
    for trace in reversed(session.traces):
        response = trace.signals.get("response")
        if response is not None and (response.lost in done or response.open in done):
            recovered.add(trace.trace_id)
        done.update(trace.done)
    return recovered


def signals_of(trace: TraceSummary, context: SessionContext) -> dict[str, float]:
    """Return the scored signals of a trace, with our enabled signals, and ``correctness`` if judged."""
    found = {
        kind: signal.value
        for kind in KINDS
        if (signal := trace.signals.get(kind)) is not None and signal.outcome == "scored" and signal.value is not None
    }
    for name in context.extra_signals:
        signal = trace.signals.get(name)
        value = None if signal is None else signal.value  # grounding has a value only if it fails
        if value is None and name == "response" and trace.crashed:
            # A crash counts even if ``response`` gives it no score (its root span never came, or the metric is
            # disabled): without it the session would look better than it was.
            value = 0.0
        if value is not None and value < 1.0:
            found[name] = value
    return found


def signal_counts(session: SessionView, context: SessionContext) -> dict[str, int]:
    found = {name: _count(session, name)[1] for name in (*KINDS, *context.extra_signals)}
    return {name: count for name, count in found.items() if count}


def is_judged(session: SessionView) -> bool:
    signals = (trace.signals.get(kind) for trace in session.traces for kind in JUDGED)
    return any(signal is not None and signal.why not in NOT_EXPECTED for signal in signals)


def was_drawn(session: SessionView) -> bool:
    """Return whether the sample of ``confidence`` contains a trace of this session."""
    signals = (trace.signals.get("confidence") for trace in session.traces)
    return any(signal is not None and signal.why != "not_sampled" for signal in signals)


def coverage(session: SessionView, context: SessionContext) -> Coverage:
    counts = {kind: _count(session, kind) for kind in KINDS if kind in context.enabled}
    thin = tuple(kind for kind, (expected, obtained) in counts.items() if expected and obtained < ENOUGH * expected)
    expected, obtained = _total(counts.values())
    wanted, had = expected, obtained
    if not context.judged:
        own = _total(_count(session, name) for name in context.extra_signals)
        wanted, had = wanted + own[0] + len(JUDGED) * len(session.traces), had + own[1]
    assumed = any(
        (signal := trace.signals.get(kind)) is not None and signal.outcome == "assumed"
        for trace in session.traces
        for kind in counts
    )
    return Coverage(had / wanted if wanted else 1.0, thin, expected, assumed)


def coverage_reason(session: SessionView, covered: Coverage) -> str:
    """Return the reason of a session whose traces lack scores: the kinds, with their numbers of traces."""
    counts = ((kind, *_count(session, kind)) for kind in covered.thin)
    shares = [f"{kind} in {obtained} of {expected}" for kind, expected, obtained in counts]
    return f"too few traces with a score: {', '.join(shares)}"


def _count(session: SessionView, name: str) -> tuple[int, int]:
    signals = [signal for trace in session.traces if (signal := trace.signals.get(name)) is not None]
    expected = [each for each in signals if each.outcome != "assumed" and each.why not in NOT_EXPECTED]
    return len(expected), sum(each.outcome == "scored" for each in expected)


def _total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    pairs = list(counts)
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)

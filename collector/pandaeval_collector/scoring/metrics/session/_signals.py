"""What the traces of a session say, made ready for the session formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pandaeval_collector.scoring.metric import SessionContext, SessionView, TraceSummary

KINDS = ("confidence", "loop_detection", "tool_correctness", "coherence")
JUDGED = ("confidence", "tool_correctness")
MADE_UP_FOR = 0.5
NOT_EXPECTED = frozenset({"no_content", "not_sampled"})
ENOUGH = 0.5
"""Each enabled kind must have been obtained in at least this share of the traces that expect it."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How complete a session's signals are. ``share``: signals obtained / expected, 1.0 where none is expected. Without
    a judge our own signals count too, and the judged kinds are expected of every trace, and missing. ``thin``: enabled
    kinds that were obtained too rarely. ``assumed``: something was reported as assumed; ``expected``: how many signals
    of the source's kinds should be there."""

    share: float
    thin: tuple[str, ...]
    expected: int
    assumed: bool


def looked_at(session: SessionView, context: SessionContext) -> float:
    """Returns the share of the applicable rule checks of a session's traces that gave a score; too little was known for
    the others. 1.0 where none applies."""
    names = {*KINDS, *context.extra_signals} - {*JUDGED}
    found = [signal for trace in session.traces for name, signal in trace.signals.items() if name in names]
    apply = [each for each in found if each.outcome != "assumed" and each.why not in NOT_EXPECTED]
    return sum(each.outcome == "scored" for each in apply) / len(apply) if apply else 1.0


def failures(session: SessionView, names: Iterable[str]) -> dict[str, int]:
    """Returns in how many traces each of the metrics fails, most first.

    A failed call of one trace that a later trace makes up for is no failure of the session.
    """
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
    """Returns the signals of each trace. A tool that failed for good in one trace and worked in a later one is no
    failure of the session, and counts half; a call that a later one answers is none at all."""
    found = [signals_of(trace, context) for trace in session.traces]
    recovered = _recovered(session)
    for trace, signals in zip(session.traces, found, strict=True):
        if trace.trace_id in recovered and "response" in signals:
            least = 1.0 if trace.signals["response"].open else MADE_UP_FOR
            signals["response"] = max(signals["response"], least)
    return found


def _recovered(session: SessionView) -> set[str]:
    """Returns the IDs of the traces whose failed or unanswered call a later trace makes up for."""
    recovered: set[str] = set()
    done: set[str] = set()
    for trace in reversed(session.traces):
        response = trace.signals.get("response")
        if response is not None and (response.lost in done or response.open in done):
            recovered.add(trace.trace_id)
        done.update(trace.done)
    return recovered


def signals_of(trace: TraceSummary, context: SessionContext) -> dict[str, float]:
    """Returns the scored signals of a trace, and our own ones of its end and its loops where they are enabled; its
    correctness where a judge was asked for it, unless all of our own are switched off."""
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


def rests_on(session: SessionView, context: SessionContext) -> dict[str, int]:
    """Returns in how many traces each signal was obtained, whether it spoke against the trace or not."""
    found = {name: _count(session, name)[1] for name in (*KINDS, *context.extra_signals)}
    return {name: count for name, count in found.items() if count}


def is_judged(session: SessionView) -> bool:
    """Returns whether a judge was or will be asked about any trace of the session."""
    signals = (trace.signals.get(kind) for trace in session.traces for kind in JUDGED)
    return any(signal is not None and signal.why not in NOT_EXPECTED for signal in signals)


def was_drawn(session: SessionView) -> bool:
    """Returns whether any trace of the session was selected and drawn for judging its confidence."""
    signals = (trace.signals.get("confidence") for trace in session.traces)
    return any(signal is not None and signal.why != "not_sampled" for signal in signals)


def coverage(session: SessionView, context: SessionContext) -> Coverage:
    """Returns how much of the expected evidence is there."""
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


def _count(session: SessionView, name: str) -> tuple[int, int]:
    """Returns in how many traces a signal is expected, and in how many of those it was obtained."""
    signals = [signal for trace in session.traces if (signal := trace.signals.get(name)) is not None]
    expected = [each for each in signals if each.outcome != "assumed" and each.why not in NOT_EXPECTED]
    return len(expected), sum(each.outcome == "scored" for each in expected)


def _total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    pairs = list(counts)
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)

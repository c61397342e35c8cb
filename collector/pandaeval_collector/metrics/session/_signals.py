"""What the traces of a session say, made ready for the session formulas."""

from __future__ import annotations

from dataclasses import dataclass

from pandaeval_collector.metric import SessionContext, SessionView, TraceSummary

KINDS = ("confidence", "loop_detection", "tool_correctness", "coherence")
NOT_EXPECTED = frozenset({"no_content", "not_sampled"})
ENOUGH = 0.5
"""Each enabled kind must have been obtained in at least this share of the traces that expect it."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """``share``: signals obtained / expected, 1.0 where none is expected. ``thin``: kinds obtained too rarely.
    ``assumed``: something was reported as assumed; ``expected``: how many signals should be there."""

    share: float
    thin: tuple[str, ...]
    expected: int
    assumed: bool


def signals_of(trace: TraceSummary, context: SessionContext) -> dict[str, float]:
    """The scored signals of a trace, and ours of how the run ended and of loops in it where they are switched on."""
    found = {
        kind: signal.value
        for kind in KINDS
        if (signal := trace.signals.get(kind)) is not None and signal.outcome == "scored" and signal.value is not None
    }
    ended = "response" if "response" in context.extra_signals else "error"  # its older name
    if ended in context.extra_signals and (value := _ending(trace)) is not None:
        found[ended] = value
    loop = trace.signals.get("tool_loop")
    if "tool_loop" in context.extra_signals and loop is not None and loop.value is not None and loop.value < 1.0:
        found["tool_loop"] = loop.value
    grounding = trace.signals.get("grounding")
    if "grounding" in context.extra_signals and grounding is not None and grounding.value is not None:
        found["grounding"] = grounding.value  # only a failed one has a value here
    return found


def _ending(trace: TraceSummary) -> float | None:
    """How the run ended, if not well. A crash that ``response`` gives no score to (its root span never came, or the
    metric is switched off) is one all the same: without it the session would look better than it was."""
    response = trace.signals.get("response")
    if response is None or response.value is None:
        return 0.0 if trace.crashed else None
    return response.value if response.value < 1.0 else None


def coverage(session: SessionView, context: SessionContext) -> Coverage:
    """How much of the evidence that should be there is there."""
    expected_all = obtained_all = 0
    thin: list[str] = []
    assumed = False
    for kind in KINDS:
        if kind not in context.enabled:
            continue
        expected = obtained = 0
        for trace in session.traces:
            signal = trace.signals.get(kind)
            if signal is None:
                continue
            assumed = assumed or signal.outcome == "assumed"
            if signal.outcome == "assumed" or signal.why in NOT_EXPECTED:
                continue
            expected += 1
            obtained += signal.outcome == "scored"
        if expected and obtained < ENOUGH * expected:
            thin.append(kind)
        expected_all += expected
        obtained_all += obtained
    share = obtained_all / expected_all if expected_all else 1.0
    return Coverage(share, tuple(thin), expected_all, assumed)

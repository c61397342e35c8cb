"""The interactions of a trial: what the user said, what came back, and the calls in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pandaeval_collector.scoring.cases.trial import Trial
from pandaeval_otel.model import ToolCall, Trace


@dataclass(frozen=True, slots=True)
class Interacted:
    """``answer``: ``None`` where none was captured, or there is none."""

    answer: str | None
    calls: tuple[ToolCall, ...]


def interactions(trial: Trial) -> list[Interacted]:
    """One for each message of the user's, in order. Where the case expects as many as there are traces, each trace is
    one; else each turn of a trace is, and a call belongs to the first turn whose answer was not begun before it."""
    if len(trial.traces) == len(trial.case.interactions):
        return [Interacted(trace.output, trial.counted(trace.tool_calls)) for trace in trial.traces]
    return [each for trace in trial.traces for each in _turns(trial, trace)]


def _turns(trial: Trial, trace: Trace) -> Iterator[Interacted]:
    if len(trace.turns) < 2:
        yield Interacted(trace.output, trial.counted(trace.tool_calls))
        return
    starts = {span.span_id: span.start_ns for span in trace.spans}
    left = list(trace.tool_calls)
    for at, turn in enumerate(trace.turns):
        begun = starts.get(turn.span_id)
        is_last = at == len(trace.turns) - 1
        own = left if is_last or begun is None else [call for call in left if call.start_ns <= begun]
        left = [] if is_last or begun is None else [call for call in left if call.start_ns > begun]
        yield Interacted(turn.assistant, trial.counted(own))

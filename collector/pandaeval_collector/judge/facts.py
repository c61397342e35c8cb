"""What code counted of a run, in words of ours alone: a text of the run could add facts of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pandaeval_collector.analysis.rules._failures import FailureSign, tells
from pandaeval_collector.analysis.rules.response_recovery import lost_at
from pandaeval_collector.judge.thoughts import thoughts
from pandaeval_otel.model import Trace

_MOST = 20
"""Calls that a line names."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """``failed``: the positions, from 1, of calls that failed; ``unsure``: of those whose results may tell of a
    failure; ``lost``: of those that failed and that no later call made up for. ``text``: all of it as lines."""

    failed: tuple[int, ...]
    unsure: tuple[int, ...]
    lost: tuple[int, ...]
    text: str


def facts(trace: Trace) -> CallFacts:
    """Of a trace as metrics see it, whose results were neither cut nor made neutral: what failed is told by the same
    predicate that limits verdicts."""
    told = [tells(call) for call in trace.tool_calls]
    failed = tuple(number for number, each in enumerate(told, 1) if each is FailureSign.FAILED)
    unsure = tuple(number for number, each in enumerate(told, 1) if each is FailureSign.UNSURE)
    lost = tuple(at + 1 for at in lost_at(trace))
    return CallFacts(failed, unsure, lost, "\n".join(_lines(trace, failed, unsure, lost)))


def _lines(trace: Trace, failed: tuple[int, ...], unsure: tuple[int, ...], lost: tuple[int, ...]) -> Iterator[str]:
    if len(trace.turns) > 1:
        yield f"turns: {len(trace.turns)}"
    yield f"tool calls: {len(trace.tool_calls)}"
    yield f"failed tool calls: {len(failed)}{_named(failed)}"
    if lost:
        yield f"failed, and no later call made up for it: {len(lost)}{_named(lost)}"
    if unsure:
        yield f"results that may tell of a failure, or not: {len(unsure)}{_named(unsure)}"
    yield f"model calls: {trace.llm_calls}"
    if not thoughts(trace):
        yield "thoughts, and words on the way: not captured"
    yield f"the run ended: {'with an error' if trace.error is not None else 'without an error'}"
    if trace.output is None or not trace.output.strip():
        yield f"the last answer: {'not captured' if trace.output is None else 'empty'}"
    if trace.ends_in_tool_call:
        yield "the record ends with a tool call that nothing in it answers: the run may go on elsewhere"
    if not trace.complete:
        yield "the end of the run is not in the record"
    if any("cut short" in note for note in trace.notes):
        yield "some of the texts were cut short before they were recorded"
    if trace.dropped_attributes:
        yield f"fields that were lost before they were recorded: {trace.dropped_attributes}"


def _named(numbers: Iterable[int]) -> str:
    shown = [*numbers]
    listed = ", ".join(map(str, shown[:_MOST]))
    return f" (calls {listed}{', …' if len(shown) > _MOST else ''})" if shown else ""

"""Detects loops in a trace by code.

A loop has the same agent and tool, equivalent or reworded arguments and an answer without news. No state change or user
message lies in between. IDs, times, counters, costs and order are no news. These are no loops:

- polling: the answer finally changes, a waiting tool is between, or 2 s are idle (10 s if work times are unknown);
- a retry with back-off: 1 s idle, or waits that grow by half;
- pagination and batches: another number, date or name is a new request;
- checks after repair steps, parallel calls, and calls by two agents.

Weak evidence counts from the third equal call: a changing, failed, reworded or result-less call. Three consecutive
failures of a tool for the same reason are a loop. Model-written code counts as a call. Agents that pass each other the
same task loop if neither finds anything new. Loops with ever new wording are not detected.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from pandaeval_collector.analysis.rules._canonical import canonical_arguments, defaults_of
from pandaeval_collector.analysis.rules._code_runs import code_runs
from pandaeval_collector.analysis.rules._cycles import (
    Cycle,
    RepeatMarker,
    Step,
    find_cycles,
    find_failing,
    find_ping_pong,
)
from pandaeval_collector.analysis.rules._rewording import mark_rewordings
from pandaeval_collector.analysis.rules._verbs import nature
from pandaeval_collector.analysis.rules._visits import Visits, contexts
from pandaeval_collector.analysis.rules.response_recovery import cached_per_trace, read_only_hints
from pandaeval_otel.model import Kind, ToolCall, ToolDefinition, Trace
from pandaeval_otel.normal.speech import tool_requests

# Where the time of a trace went between two tool calls.
_WORK = frozenset({Kind.LLM, Kind.TOOL, Kind.RETRIEVAL, Kind.EMBEDDING, Kind.GUARDRAIL, Kind.EVALUATION})
LOOPING_ROUNDS = 3
# Limit for a run whose steps are separate traces.
#
# The trace of the last step contains the whole run, and its result reports the loops. A run that does not end has no
# last step. Its loop is reported once, at the step at which the wasted calls reach this limit.
RUNAWAY = 8
"""Wasted calls."""


class Timeline:
    """Time use of a trace. Built in O(n log n); each query is O(log n)."""

    def __init__(self, trace: Trace) -> None:
        models = sorted((span for span in trace.spans if span.kind is Kind.LLM), key=lambda span: span.start_ns)
        self._tool_spans = {span.span_id for span in trace.spans if span.kind is Kind.TOOL}
        self._model_starts = [span.start_ns for span in models]
        self._models = {span.span_id: span.start_ns for span in models}
        self._tokens = [0, *accumulate(span.usage.input + span.usage.output if span.usage else 0 for span in models)]
        work = merged((span.start_ns, span.end_ns) for span in trace.spans if span.kind in _WORK)
        self._starts = [start for start, _ in work]
        self._ends = [end for _, end in work]
        self._worked = [0, *accumulate(end - start for start, end in work)]
        ends = {span.span_id: span.end_ns for span in trace.spans}
        answered = [turn.span_id for turn in trace.turns[:-1] if turn.assistant is not None]
        self._turn_ends = sorted(ends[span_id] for span_id in answered if span_id in ends)

    def idle_s(self, before: ToolCall, after: ToolCall) -> float:
        """Return the seconds between two calls without model or tool work."""
        gap = after.start_ns - before.end_ns
        if gap <= 0:
            return 0.0
        return (gap - self._work_before(after.start_ns) + self._work_before(before.end_ns)) / 1e9

    def knows_work(self, call: ToolCall) -> bool:
        """Return whether the trace has model calls and this call's duration."""
        return bool(self._model_starts) and call.span_id in self._tool_spans

    def asked_by(self, call: ToolCall) -> int:
        """Return the number of the latest model call before a call, or ``0``."""
        if self._models.get(call.span_id) == call.start_ns:
            return 0
        return bisect_left(self._model_starts, call.start_ns)

    def tokens(self, start_ns: int, end_ns: int) -> int:
        first, last = bisect_left(self._model_starts, start_ns), bisect_left(self._model_starts, end_ns)
        return self._tokens[max(first, last)] - self._tokens[first]

    def turn(self, call: ToolCall) -> int:
        return bisect_right(self._turn_ends, call.start_ns)

    def _work_before(self, at_ns: int) -> int:
        index = bisect_right(self._starts, at_ns)
        if index == 0:
            return 0
        return self._worked[index] - max(0, self._ends[index - 1] - at_ns)


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping intervals, sorted. An interval that ends before its start is empty."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((start, max(start, end)) for start, end in intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@dataclass(frozen=True, slots=True)
class LoopCycle:
    """A repeated activity.

    ``kind``: ``repeat`` (one call), ``cycle2``, ``cycle3`` (calls in turn), ``failing`` (one tool, one reason),
    ``ping_pong`` (two agents). ``rounds`` >= 2. ``span_ids``: all rounds in order. ``wasted_calls``, ``seconds``,
    ``tokens``: after the first round.
    """

    kind: str
    rounds: int
    tools: tuple[str, ...]
    span_ids: tuple[str, ...]
    wasted_calls: int
    seconds: float
    tokens: int
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """Repetitions in a trace.

    ``calls``: tool calls and code runs. ``repeated``: indexes of wasted calls in ``trace.tool_calls``. ``written``:
    wasted code runs. ``seconds``, ``tokens``: in all cycles, overlaps once. ``unseen``: possible uncaptured
    repetitions.
    """

    calls: int
    repeated: tuple[int, ...] = ()
    written: int = 0
    cycles: tuple[LoopCycle, ...] = ()
    seconds: float = 0.0
    tokens: int = 0
    unseen: int = 0

    @property
    def wasted_calls(self) -> int:
        return len(self.repeated) + self.written

    @property
    def ratio(self) -> float:
        """Wasted calls / calls, in 0..1 (below 1); 0 without calls."""
        return self.wasted_calls / self.calls if self.calls else 0.0

    @property
    def looping(self) -> bool:
        """Whether anything was done at least three times."""
        return any(cycle.rounds >= LOOPING_ROUNDS for cycle in self.cycles)


@cached_per_trace
def tool_loop(trace: Trace) -> ToolLoop:
    """Find the repeated tool calls of a trace and their cycles. Never raises. O(n log n); any thread."""
    trace, numbers = _with_code(trace)
    if not _may_loop(trace):
        return ToolLoop(len(trace.tool_calls), unseen=_unseen(trace))
    visits = Visits(trace)
    timeline = Timeline(trace)
    steps = _steps(trace, timeline, visits)
    mark_rewordings(steps)
    RepeatMarker(steps).mark()
    cycles = [*find_cycles(steps), *find_ping_pong(visits.all, steps)]
    cycles += find_failing(steps, cycles)
    wasted = {index for cycle in cycles for index in cycle.wasted}
    calls = trace.tool_calls
    times = [_later_rounds(cycle, calls) for cycle in cycles]
    spent = merged(times)
    return ToolLoop(
        calls=len(calls),
        repeated=tuple(numbers[index] for index in sorted(wasted) if numbers[index] >= 0),
        written=sum(numbers[index] < 0 for index in wasted),
        cycles=tuple(_described(*pair, calls, timeline) for pair in zip(cycles, times, strict=True)),
        seconds=sum(end - start for start, end in spent) / 1e9,
        tokens=sum(timeline.tokens(*time) for time in spent),
        unseen=_unseen(trace),
    )


def _with_code(trace: Trace) -> tuple[Trace, tuple[int, ...]]:
    written = code_runs(trace) if len(trace.spans) >= LOOPING_ROUNDS else ()
    if not written:
        return trace, tuple(range(len(trace.tool_calls)))
    both = [*enumerate(trace.tool_calls), *((-1, run) for run in written)]
    both.sort(key=lambda pair: pair[1].start_ns)
    return replace(trace, tool_calls=tuple(call for _, call in both)), tuple(number for number, _ in both)


def _later_rounds(cycle: Cycle, calls: Sequence[ToolCall]) -> tuple[int, int]:
    if cycle.visits:
        return cycle.visits[2].start_ns, cycle.visits[-1].end_ns
    return calls[cycle.wasted[0] - 1].end_ns, calls[cycle.wasted[-1]].end_ns


def _described(cycle: Cycle, time: tuple[int, int], calls: Sequence[ToolCall], timeline: Timeline) -> LoopCycle:
    members = [calls[index] for index in cycle.members]
    return LoopCycle(
        kind=cycle.kind,
        rounds=cycle.rounds,
        tools=tuple(dict.fromkeys(call.name for call in members)),
        span_ids=tuple(call.span_id for call in members) or tuple(visit.first_span_id for visit in cycle.visits),
        wasted_calls=len(cycle.wasted),
        seconds=max(0, time[1] - time[0]) / 1e9,
        tokens=timeline.tokens(*time),
        agents=tuple(visit.agent for visit in cycle.visits[:2]),
    )


def _unseen(trace: Trace) -> int:
    calls = trace.tool_calls
    times = Counter([call.name for call in calls])
    tools = {tool.name: tool for tool in trace.tools}
    blind = sum(
        times[call.name] > 1 and not call.has_arguments and not _takes_none(tools.get(call.name)) for call in calls
    )
    silent = Counter(
        (call.name, canonical_arguments(call.arguments))
        for call in calls
        if times[call.name] > 1 and call.has_arguments and not call.has_result and call.error is None
    )
    return blind + sum(count for count in silent.values() if count > 1)


def _may_loop(trace: Trace) -> bool:
    """Return whether a tool was called twice, or several agents worked."""
    tools = [call.name for call in trace.tool_calls]
    agents = {span.agent_name for span in trace.spans if span.agent_name}
    return len(set(tools)) < len(tools) or len(agents) > 1


def _steps(trace: Trace, timeline: Timeline, visits: Visits) -> list[Step]:
    tools = {tool.name: tool for tool in reversed(trace.tools)}
    inside = contexts(trace.spans)
    given_on = {*inside.values()} - {""}
    defaults = {name: found for name, tool in tools.items() if (found := defaults_of(tool)) is not None}
    steps: list[Step] = []
    for call in trace.tool_calls:
        arguments = None
        if call.has_arguments or _takes_none(tools.get(call.name)):
            arguments = canonical_arguments(call.arguments, defaults.get(call.name))
        signature = f"{inside.get(call.span_id, '')}\0{call.agent}\0{call.name}\0{arguments}"
        step = Step(
            call=call,
            nature=nature(call.name, read_only_hints(trace).get(call.name)),
            signature=None if arguments is None else signature,
            turn=timeline.turn(call),
            visit=visits.of(call),
            delegates=call.span_id in given_on,
            asked_by=timeline.asked_by(call),
        )
        if steps:
            before = steps[-1].call
            step.idle_s, step.idle_known = timeline.idle_s(before, call), timeline.knows_work(before)
        steps.append(step)
    return steps


def _takes_none(tool: ToolDefinition | None) -> bool:
    return tool is not None and isinstance(tool.parameters, dict) and tool.parameters.get("properties") == {}


def runaway_loop(step: Trace) -> ToolLoop | None:
    """Return the waste up to a step (:attr:`pandaeval_otel.model.Trace.is_step`) if it first reaches the limit there,
    else ``None``.
    """
    done = tuple(call for call in step.tool_calls if call.has_result)
    if len(done) <= RUNAWAY:
        return None
    found = tool_loop(replace(step, tool_calls=done))
    if not found.looping or found.wasted_calls < RUNAWAY:
        return None
    # Without the calls of the previous step, which are in the last message of the history with calls.
    calls = [span for span in step.spans if span.kind is Kind.LLM and span.input]
    messages = calls[-1].input or () if calls else ()
    newest = next((len(asked) for message in reversed(messages) if (asked := tool_requests([message]))), 1)
    known = tool_loop(replace(step, tool_calls=done[: -newest or None]))
    return None if known.looping and known.wasted_calls >= RUNAWAY else found

"""Does the agent repeat calls without progress in one trace?

Code finds wasted tool calls, and the score is 1 minus their share. A wasted call repeats an earlier call with
equivalent arguments, and returns no new result. Between the two calls, the agent changed nothing. It does not judge the
choice of tools. Polling, pagination, batches, retries with back-off and checks after a repair are not loops.

If a cycle of calls has three or more rounds, the trace fails whatever the share is. It also fails if a tool fails three
times in a row for the same reason. If it does not fail, and arguments or results of most calls were not captured, there
is no score. ``coverage`` is the share of calls that can be compared. Code that a model writes counts as a call if it
runs without a tool call.
:mod:`pandaeval_collector.analysis.rules.tool_loop` has the rules.

If each model call is a trace, the metric reads the last trace, which holds all calls. A run without an end is reported
once, after 8 wasted calls.

Source: ours. PandaProbe's loop detection compares only different traces.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pandaeval_collector.analysis.rules.tool_loop import LoopCycle, ToolLoop, runaway_loop, tool_loop
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import TraceContext, TraceMetric
from pandaeval_otel.model import Trace

_MAX_CYCLES, _MAX_SPANS = 20, 100
ENOUGH = 0.5
"""Minimum share of calls that can be compared, for a score of a run without a loop."""


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    found = runaway_loop(trace) if trace.is_step else tool_loop(trace)
    if found is None or (not found.calls and not found.cycles):
        return None
    coverage = 1.0 - found.unseen / max(1, found.calls)
    missing = f"arguments or results of {found.unseen} of {found.calls} calls were not captured"
    if not found.looping and coverage < ENOUGH:
        return Unscored(Why.NO_CONTENT, f"{missing}, so they may repeat other calls", coverage=coverage)
    calls = trace.tool_calls
    if calls and not found.cycles and not any(call.has_arguments or call.has_result for call in calls):
        return Unscored(Why.NO_CONTENT, "no arguments and no results of calls were captured")
    gap = f"; {missing}" if found.unseen else ""
    metadata: dict[str, Any] = {
        "calls": found.calls,
        "wasted_calls": found.wasted_calls,
        "wasted_seconds": found.seconds,
        "wasted_tokens": found.tokens,
        "cycles": [
            {**asdict(cycle), "span_ids": list(cycle.span_ids[:_MAX_SPANS])} for cycle in found.cycles[:_MAX_CYCLES]
        ],
    }
    if not found.cycles:
        made = "1 tool call" if found.calls == 1 else f"{found.calls} tool calls"
        return Score(1.0, f"no needless repetition in {made}{gap}", metadata, coverage=coverage)
    worst = max(found.cycles, key=lambda cycle: cycle.wasted_calls)
    metadata["tool"] = " → ".join(worst.tools) or None
    return Score(
        1.0 - found.ratio,
        _reason(found, worst) + gap,
        metadata,
        label="loop" if found.looping else None,
        failed=found.looping,
        coverage=coverage,
        span_ids=tuple(dict.fromkeys(span_id for cycle in found.cycles for span_id in cycle.span_ids)),
    )


def _reason(found: ToolLoop, worst: LoopCycle) -> str:
    if not worst.tools:
        return (
            f"agents {' and '.join(worst.agents)} passed the run to each other {worst.rounds} times, with no new result"
        )
    called, how = "was called" if len(worst.tools) == 1 else "were called in turn", "in the same way"
    if worst.kind == "failing":  # the arguments differ
        called, how = "failed", "for the same reason"
    times = f"{' → '.join(worst.tools)} {called} {worst.rounds} times {how}"
    return f"{times}; {found.wasted_calls} of {found.calls} tool calls brought no new result"


METRIC = TraceMetric(
    name="tool_loop",
    kind="code",
    version="15",
    threshold=0.5,
    question="Does the agent repeat calls without progress in one trace?",
    needs="tool calls",
    evaluate=_evaluate,
    unscored=(Why.NO_CONTENT,),
    of_steps=True,
)

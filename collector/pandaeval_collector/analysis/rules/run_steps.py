"""The steps of a run and what is countable about each: what ``pandaeval learn steps`` learns from. No text leaves the
trace."""

from __future__ import annotations

import re
from math import log1p

from pandaeval_collector.analysis.rules.response_recovery import spelled_calls, wrong_calls
from pandaeval_otel.model import Kind, Span, Trace

MOST_STEPS = 400
"""Of a longer run only the last ones count."""
_LOOKED_AT = 20_000
_SAME = 200
"""Messages whose first characters are equal repeat each other."""
_NUMBER = re.compile(r"\d+")


def steps_of(trace: Trace) -> list[Span]:
    """Returns the spans that can break a run, in order: model calls, tool calls, retrievals, and agents that show no
    step of their own; without the outermost span."""
    inner = {span.parent_id for span in trace.spans}
    found = [
        span
        for span in trace.spans
        if span.span_id != trace.root_span_id
        if span.kind in (Kind.LLM, Kind.TOOL, Kind.RETRIEVAL) or (span.kind is Kind.AGENT and span.span_id not in inner)
    ]
    return found[-MOST_STEPS:]


def step_rows(trace: Trace, steps: list[Span]) -> list[dict[str, float]]:
    """Returns the features of each of a trace's steps, by name, see
    :data:`pandaeval_collector.analysis.stats.problem_features.OF_STEPS`."""
    calls = {
        call.span_id: (call, wrong, f"{call.name} {spelled}")
        for call, wrong, spelled in zip(trace.tool_calls, wrong_calls(trace), spelled_calls(trace), strict=True)
    }
    is_call = [step.kind is not Kind.LLM and step.kind is not Kind.AGENT for step in steps]
    failed = [
        step.error is not None or (is_tool and step.span_id in calls and calls[step.span_id][1])
        for step, is_tool in zip(steps, is_call, strict=True)
    ]
    first_failure = failed.index(True) if True in failed else -1
    rows, done, agents = [], set[str](), list[str]()
    for at, step in enumerate(steps):
        text = "\n".join(message.text for message in step.output or ())[:_LOOKED_AT]
        what = text[:_SAME]
        if is_call[at] and step.span_id in calls:
            call, _, what = calls[step.span_id]
            text = str(call.result)[:_LOOKED_AT] if call.has_result else ""
        agent = step.agent_name or (agents[-1] if agents else "")
        found = {
            "call": is_call[at],
            "asks": at + 1 < len(steps) and is_call[at + 1],
            "after_call": at > 0 and is_call[at - 1],
            "first": at == 0,
            "last": at + 1 == len(steps),
            "failed": failed[at],
            "before_failure": at + 1 < len(steps) and failed[at + 1],
            "before_first_failure": at == first_failure - 1,
            "after_failure": at > 0 and failed[at - 1],
            "repeats": bool(what) and what in done,
            "new_agent": agent not in agents,
            "other_agent": agent != (agents[-1] if agents else ""),
            "code": "```" in text,
        }
        measured = {
            "late": at / max(1, len(steps) - 1),
            "from_end": log1p(len(steps) - 1 - at),
            "length": log1p(len(text)),
            "numbers": log1p(len(_NUMBER.findall(text))),
        }
        rows.append({**{name: float(holds) for name, holds in found.items()}, **measured})
        done.add(what)
        agents.append(agent)
    return rows

"""What is countable about each step of a run: what ``pandaeval learn steps`` learns from."""

from __future__ import annotations

import re
from math import log1p

from pandaeval_collector.analysis.rules.response_recovery import wrong_calls
from pandaeval_otel.model import Kind, Span, Trace

_LOOKED_AT = 20_000
_NUMBER = re.compile(r"\d+")


def step_rows(trace: Trace, steps: list[Span]) -> list[dict[str, float]]:
    """Returns the features of each of a trace's steps, by name, see
    :data:`pandaeval_collector.analysis.stats.problem_features.OF_STEPS`."""
    calls = {call.span_id: call for call in trace.tool_calls}
    wrong = {call.span_id for call, bad in zip(trace.tool_calls, wrong_calls(trace), strict=True) if bad}
    is_call = [step.kind in (Kind.TOOL, Kind.RETRIEVAL) for step in steps]
    failed = [step.error is not None or step.span_id in wrong for step in steps]
    rows, agents = [], set[str]()
    for at, step in enumerate(steps):
        call = calls.get(step.span_id) if is_call[at] else None
        said = "\n".join(message.text for message in step.output or ()) if call is None else str(call.result or "")
        text = said[:_LOOKED_AT]
        found = {
            "call": is_call[at],
            "after_call": at > 0 and is_call[at - 1],
            "first": at == 0,
            "failed": failed[at],
            "before_failure": failed[at + 1 : at + 2] == [True],
            "new_agent": step.agent_name not in agents,
            "code": "```" in text,
            "late": at / max(1, len(steps) - 1),
            "from_end": log1p(len(steps) - 1 - at),
            "length": log1p(len(text)),
            "numbers": log1p(len(_NUMBER.findall(text))),
        }
        rows.append({name: float(value) for name, value in found.items()})
        agents.add(step.agent_name)
    return rows

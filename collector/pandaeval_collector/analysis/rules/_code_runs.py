"""Code that a model writes and has run, step by step, seen as calls of a tool."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

from pandaeval_collector.analysis.rules._canonical import statements
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, Trace

NAME = "code"
_BLOCK = re.compile(
    r"(?:```(?:py|python|js|javascript|bash|sh|sql)\s*\n|<code>)(.{1,20000}?)(?:```|</code>)", re.DOTALL
)
_OBSERVED = re.compile(r"(?:call id: \S+\s+)?(?:observations?|execution logs|output|result|error)\s*:", re.IGNORECASE)


def code_runs(trace: Trace) -> tuple[ToolCall, ...]:
    """Finds the code of each model answer, with what the next model call of the same agent was told of it; those that
    were run because somebody observed them. Where tools were called meanwhile, these calls tell more: such code is left
    out."""
    models = [span for span in trace.spans if span.kind is Kind.LLM and span.output]
    if not _may_be_written([message for span in models for message in span.output or ()]):
        return ()
    agents: dict[str, list[Span]] = {}
    for span in models:
        agents.setdefault(span.agent_name, []).append(span)
    starts = sorted(call.start_ns for call in trace.tool_calls)
    runs = []
    for model, after in (pair for of_agent in agents.values() for pair in pairwise(of_agent)):
        code = _code(model.output or ())
        if not code or bisect_left(starts, model.end_ns) < bisect_left(starts, after.start_ns):
            continue
        seen = observed(after.input or ())
        if seen is not None:
            runs.append(
                ToolCall(
                    NAME,
                    "",
                    {"code": code},
                    seen,
                    None,
                    model.span_id,
                    model.agent_name,
                    model.end_ns,
                    model.end_ns,
                    has_arguments=True,
                    has_result=True,
                )
            )
    return tuple(sorted(runs, key=attrgetter("start_ns")))


def _may_be_written(messages: Sequence[Message]) -> bool:
    """Whether code stands in any of these: told in a fraction of the time that reading it takes, as most hold none."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text) and ("```" in part.text or "<code>" in part.text):
                return True
    return False


def _code(output: Sequence[Message]) -> str:
    return "\n".join(map(statements, written(output)))


def written(output: Sequence[Message]) -> list[str]:
    """Finds the pieces of code in a model's answer, as they stand there."""
    text = "\n".join(message.text for message in output if not message.tool_requests)
    return _BLOCK.findall(text) if "```" in text or "<code>" in text else []


def observed(messages: Sequence[Message]) -> str | None:
    """Reads what stands last in a model's input, if it is what somebody observed of code."""
    if not messages:
        return None
    last = messages[-1]
    for response in last.tool_responses:
        if isinstance(response.result, str) and _OBSERVED.match(response.result):
            return response.result
    return last.text if last.role in ("user", "tool") and _OBSERVED.match(last.text) else None

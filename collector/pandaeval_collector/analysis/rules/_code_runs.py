"""Code that a model writes and has run, step by step, seen as calls of a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pandaeval_collector.analysis.rules._canonical import statements
from pandaeval_otel.model import Kind, Message, ToolCall, Trace

NAME = "code"
_BLOCK = re.compile(
    r"(?:```(?:py|python|js|javascript|bash|sh|sql)\s*\n|<code>)(.{1,20000}?)(?:```|</code>)", re.DOTALL
)
_OBSERVED = re.compile(r"(?:call id: \S+\s+)?(?:observations?|execution logs|output|result|error)\s*:", re.IGNORECASE)


def code_runs(trace: Trace) -> tuple[ToolCall, ...]:
    """Finds the code of each model answer, with what the next model call of the same agent was told of it; those that
    were run because somebody observed them. For traces without tool calls: the calls inside the code tell more."""
    models = [span for span in trace.spans if span.kind is Kind.LLM and span.output]
    runs = []
    for model, after in pairwise(models):
        code = _code(model.output or ())
        seen = _observed(after.input or ()) if code else None
        if code and seen is not None:
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
    return tuple(runs)


def _code(output: Sequence[Message]) -> str:
    text = "\n".join(message.text for message in output if not message.tool_requests)
    if "```" not in text and "<code>" not in text:
        return ""
    return "\n".join(statements(found) for found in _BLOCK.findall(text))


def _observed(messages: Sequence[Message]) -> str | None:
    """What stands last in a model's input, if it is what somebody observed of code."""
    if not messages:
        return None
    last = messages[-1]
    for response in last.tool_responses:
        if isinstance(response.result, str) and _OBSERVED.match(response.result):
            return response.result
    return last.text if last.role in ("user", "tool") and _OBSERVED.match(last.text) else None

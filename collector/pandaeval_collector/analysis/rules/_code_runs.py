"""Model-written and executed code, as tool calls."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

from pandaeval_collector.analysis.rules._canonical import statements
from pandaeval_otel.model import Kind, Message, Span, ToolCall, Trace

NAME = "code"
_OPENS = re.compile(r"```(?:py|python|js|javascript|bash|sh|sql)\s*\n|<code>")
_CLOSES = re.compile(r"```|</code>")
_LONGEST = 20_000
"""Maximum characters of a block."""
_OBSERVED = re.compile(r"(?:call id: \S+\s+)?(?:observations?|execution logs|output|result|error)\s*:", re.IGNORECASE)


def code_runs(trace: Trace) -> tuple[ToolCall, ...]:
    """Find executed code in model answers, with its output. Skips code with tool calls in between."""
    agents: dict[str, list[Span]] = {}
    for span in trace.spans:
        if span.kind is Kind.LLM and span.output:
            agents.setdefault(span.agent_name, []).append(span)
    starts = sorted(call.start_ns for call in trace.tool_calls)
    runs = []
    for model, after in (pair for of_agent in agents.values() for pair in pairwise(of_agent)):
        if bisect_left(starts, model.end_ns) < bisect_left(starts, after.start_ns):
            continue
        code = "\n".join(map(statements, code_blocks(model.output or ())))
        if code and (seen := code_output(after.input or ())) is not None:
            at = (model.span_id, model.agent_name, model.end_ns, model.end_ns)
            runs.append(ToolCall(NAME, "", {"code": code}, seen, None, *at, has_arguments=True, has_result=True))
    return tuple(sorted(runs, key=attrgetter("start_ns")))


def code_blocks(output: Sequence[Message]) -> list[str]:
    text = "\n".join(message.text for message in output if not message.tool_requests)
    blocks: list[str] = []
    if "```" not in text and "<code>" not in text:
        return blocks
    opens, closes = _OPENS.search(text), _CLOSES.search(text)
    while opens and closes:
        if closes.start() <= opens.end():  # an empty block does not count
            closes = _CLOSES.search(text, opens.end() + 1)
            continue
        fits = closes.start() - opens.end() <= _LONGEST
        if fits:
            blocks.append(text[opens.end() : closes.start()])
        opens = _OPENS.search(text, closes.end() if fits else opens.end())
    return blocks


def code_output(messages: Sequence[Message]) -> str | None:
    """Return the last message of a model's input if it is code output, else ``None``."""
    if not messages:
        return None
    last = messages[-1]
    for response in last.tool_responses:
        if isinstance(response.result, str) and _OBSERVED.match(response.result):
            return response.result
    return last.text if last.role in ("user", "tool") and _OBSERVED.match(last.text) else None

"""Reads thoughts and hosted tool calls from the raw JSON body of a model's response."""

from __future__ import annotations

import re
from typing import Any

from pandaeval_otel.dialects._hosted import CALLS
from pandaeval_otel.dialects._message_edits import Messages
from pandaeval_otel.dialects._messages import messages_of
from pandaeval_otel.dialects._reprs import from_repr
from pandaeval_otel.dialects._values import as_dict, parsed
from pandaeval_otel.model import Message, Part, Reasoning, Text, ToolRequest, ToolResponse
from pandaeval_otel.model.message import all_parts

_MARKS = (
    "reasoning_content",
    '"summary_text"',
    '"thought":true',
    '"thought": true',
    '"reasoning": "',
    '"reasoning":"',
    '"thinking": "',
    '"thinking":"',
)
_HOSTED_WORDS = (*sorted(CALLS), "rounding", "xecutable")
"""Words of :data:`_HOSTED`. Searching for them first is ten times faster."""
_HOSTED = re.compile(
    rf'"type":\s*"(?:{"|".join(sorted(CALLS))})"|"(?:grounding_?[mM]etadata|executable_?[cC]ode)":\s*\{{'
)
_IN_REPR = re.compile(r"""reasoning_content=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)


def with_thoughts(output: Messages, response: str) -> Messages:
    """Add the thoughts of ``response`` (raw JSON body) before ``output``. Drops texts that repeat a thought."""
    if not any(mark in response for mark in _MARKS):
        return output
    if any(type(part) is Reasoning for part in all_parts(output)):
        return output
    thoughts = _thoughts(response)
    if not thoughts:
        return output
    known = {thought.text for thought in thoughts}
    head, *rest = output
    others = [part for part in head.parts if not (type(part) is Text and part.text in known)]
    return (head.with_parts(*thoughts, *others), *rest)


def with_hosted_calls(output: Messages, response: str) -> Messages:
    """Replace ``output`` by the answer in ``response`` (raw JSON body) if the answer has more tool calls."""
    if not any(word in response for word in _HOSTED_WORDS) or _HOSTED.search(response) is None:
        return output
    parts = all_parts(_answer_in(parsed(response)))  # items are parts of one answer
    if _calls_and_results(parts) < _calls_and_results(all_parts(output)):
        return output
    return (Message("assistant", tuple(parts), output[-1].finish_reason),)


def _calls_and_results(parts: list[Part]) -> int:
    return sum(type(part) in (ToolRequest, ToolResponse) for part in parts)


def _thoughts(response: str) -> tuple[Reasoning, ...]:
    body = parsed(response)
    raw = as_dict(body).get("raw")
    if type(raw) is str:  # smolagents keep the client's response object as its repr
        match = _IN_REPR.search(raw)
        text = as_dict(from_repr(f"Thoughts(text={match[1]})")).get("text") if match else None
        if type(text) is str:
            return (Reasoning(text),)
        return ()
    return tuple(part for part in all_parts(_answer_in(body)) if type(part) is Reasoning and part.text)


def _answer_in(body: Any) -> Messages:
    items = as_dict(body).get("output")  # of OpenAI's Responses API
    return messages_of(items if type(items) is list else body, "assistant") or ()

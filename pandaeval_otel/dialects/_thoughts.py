"""The model's thoughts, where an instrumentation leaves them only in the raw response that it writes down besides."""

from __future__ import annotations

import re

from pandaeval_otel.dialects._messages import Messages, messages_of
from pandaeval_otel.dialects._reprs import from_repr
from pandaeval_otel.dialects._values import parsed
from pandaeval_otel.model import Message, Reasoning, Text

_MARKS = ("reasoning_content", '"reasoning": "', '"reasoning":"', '"thinking": "', '"thinking":"')
_IN_REPR = re.compile(r"""reasoning_content=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)


def with_thoughts(output: Messages, response: str) -> Messages:
    """``output`` with the thoughts that ``response`` (the same answer's raw body, as JSON) holds in front. A text that
    only repeats a thought is taken for one."""
    if not any(mark in response for mark in _MARKS):
        return output
    if any(type(part) is Reasoning for message in output for part in message.parts):
        return output
    thoughts = _thoughts(response)
    if not thoughts:
        return output
    known = {thought.text for thought in thoughts}
    first, *rest = output
    said = tuple(part for part in first.parts if not (type(part) is Text and part.text in known))
    return (Message(first.role, (*thoughts, *said), first.finish_reason), *rest)


def _thoughts(response: str) -> tuple[Reasoning, ...]:
    body = parsed(response)
    raw = body.get("raw") if type(body) is dict else None
    if type(raw) is str:  # smolagents keep the client's response object as its repr
        match = _IN_REPR.search(raw)
        said = from_repr(f"Thoughts(text={match[1]})") if match else None
        return (Reasoning(said["text"]),) if type(said) is dict and type(said.get("text")) is str else ()
    found = messages_of(body, "assistant") or ()
    return tuple(part for message in found for part in message.parts if type(part) is Reasoning and part.text)

"""Removes secrets from trace content for a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pandaeval_collector.base.untrusted.secrets import is_secret_field, redact
from pandaeval_collector.judge.context import instructions_of, opening, with_texts
from pandaeval_otel.model import Kind, Message, OtherPart, Part, Reasoning, Span, Text, ToolRequest, ToolResponse, Trace

__all__ = ["Hide", "redact", "redact_value", "redacted"]

Hide = Callable[[str], str]
"""Redacts a text."""
_NUMERIC = 1000
_REMEMBER = 256


def redact_value(value: Any, hide: Hide = redact) -> Any:
    """Redact texts in a JSON value, and values of secret-named fields."""
    match value:
        case str():
            return hide(value)
        case Mapping():
            return _redact_fields(value, hide)
        case list() | tuple():
            return [redact_value(item, hide) for item in value]
        case _:
            return value


def _redact_fields(fields: Mapping[Any, Any], hide: Hide) -> dict[str, Any]:
    name = fields.get("name", fields.get("key"))
    redacted: dict[str, Any] = {}
    for key, value in fields.items():
        is_named = key == "value" and isinstance(name, str) and is_secret_field(name, value)
        if is_named or is_secret_field(str(key), value):
            value = _withheld(value)
        redacted[hide(str(key))] = redact_value(value, hide)
    return redacted


def _withheld(value: Any) -> Any:
    match value:
        case str():
            return "[secret: password]" if value and not value.startswith("[secret") else value
        case int() if not isinstance(value, bool) and abs(value) >= _NUMERIC:
            return "[secret: password]"
        case list() | tuple():
            return [_withheld(item) for item in value]
        case _:
            return value


def redacted(trace: Trace, hide: Hide = redact) -> Trace:
    """Return the trace with ``hide`` applied to everything a judge may see."""
    hide, first = lru_cache(_REMEMBER)(hide), opening(trace)  # caches texts that many model calls repeat

    def some(text: str | None) -> str | None:
        return None if text is None else hide(text)

    def value(given: Any) -> Any:
        return redact_value(given, hide)

    return replace(
        trace,
        error=some(trace.error),
        input=some(trace.input),
        output=some(trace.output),
        turns=tuple(replace(turn, user=some(turn.user), assistant=some(turn.assistant)) for turn in trace.turns),
        tool_calls=tuple(
            replace(call, arguments=value(call.arguments), result=value(call.result), error=some(call.error))
            for call in trace.tool_calls
        ),
        tools=tuple(replace(tool, description=hide(tool.description)) for tool in trace.tools),
        reasoning=tuple(hide(text) for text in trace.reasoning),
        spans=tuple(_span(span, hide, span is first) for span in trace.spans),
    )


def _span(span: Span, hide: Hide, is_first: bool) -> Span:
    if is_first or any(True for _ in instructions_of(span)):
        system = None if span.system is None else hide(span.system)
        span = replace(span, system=system, input=_input(span.input, hide, is_first))
    if span.documents:
        span = replace(span, documents=tuple(redact_value(document, hide) for document in span.documents))
    if span.kind is Kind.LLM and any(map(_thinks, span.output or ())):
        span = replace(span, output=tuple(with_texts(message, hide) for message in span.output or ()))
    return span


def _input(messages: tuple[Message, ...] | None, hide: Hide, is_first: bool) -> tuple[Message, ...] | None:
    if messages is None:
        return None
    if is_first:
        return tuple(_whole(message, hide) for message in messages)
    return tuple(with_texts(message, hide) if message.role == "system" else message for message in messages)


def _thinks(message: Message) -> bool:
    return any(isinstance(part, Reasoning | ToolRequest) for part in message.parts)


def _whole(message: Message, hide: Hide) -> Message:
    def hidden(part: Part) -> Part:
        match part:
            case Text():
                return Text(hide(part.text))
            case ToolRequest():
                return replace(part, arguments=redact_value(part.arguments, hide))
            case ToolResponse():
                return replace(part, result=redact_value(part.result, hide))
            case OtherPart():
                return replace(part, value=redact_value(part.value, hide))
        return part

    return Message(message.role, tuple(map(hidden, message.parts)), message.finish_reason)

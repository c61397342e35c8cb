"""Secrets taken out of all that a judge may be shown of a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pandaeval_collector.base.untrusted.secrets import is_secret_field, redact
from pandaeval_collector.judge.before import instructions_of, opening, with_hidden
from pandaeval_otel.model import Kind, Message, Reasoning, Span, Text, ToolCall, ToolRequest, Trace

__all__ = ["Hide", "redact", "redact_value", "redacted"]

Hide = Callable[[str], str]
"""A text without what is not to be seen."""


def redact_value(value: Any, hide: Hide = redact) -> Any:
    """A JSON value with its texts redacted, and whatever stands in a field that is named like a secret."""
    match value:
        case str():
            return hide(value)
        case Mapping():
            return {hide(str(key)): _field(str(key), each, hide) for key, each in value.items()}
        case list() | tuple():
            return [redact_value(each, hide) for each in value]
        case _:
            return value


def _field(name: str, value: Any, hide: Hide) -> Any:
    return redact_value(_withheld(value) if is_secret_field(name) else value, hide)


def _withheld(value: Any) -> Any:
    """What stands in a field that is named like a secret. A small number there counts something."""
    match value:
        case str():
            return "[secret: password]" if value and not value.startswith("[secret") else value
        case int() if not isinstance(value, bool) and abs(value) >= _NUMERIC:
            return "[secret: password]"
        case list() | tuple():
            return [_withheld(each) for each in value]
        case _:
            return value


_NUMERIC = 1000
_REMEMBER = 256


def redacted(trace: Trace, hide: Hide = redact) -> Trace:
    """The trace with ``hide`` applied to all that a judge may be shown of it, also beside its pack."""
    hide = lru_cache(_REMEMBER)(hide)  # what many model calls are told alike is looked through once
    some, first = _or_none(hide), opening(trace)
    return replace(
        trace,
        error=some(trace.error),
        input=some(trace.input),
        output=some(trace.output),
        turns=tuple(replace(turn, user=some(turn.user), assistant=some(turn.assistant)) for turn in trace.turns),
        tool_calls=tuple(_call(call, hide) for call in trace.tool_calls),
        tools=tuple(replace(tool, description=hide(tool.description)) for tool in trace.tools),
        reasoning=tuple(hide(text) for text in trace.reasoning),
        spans=tuple(_span(span, hide, span is first) for span in trace.spans),
    )


def _or_none(hide: Hide) -> Callable[[str | None], str | None]:
    return lambda text: None if text is None else hide(text)


def _call(call: ToolCall, hide: Hide) -> ToolCall:
    return replace(
        call,
        arguments=redact_value(call.arguments, hide),
        result=redact_value(call.result, hide),
        error=_or_none(hide)(call.error),
    )


def _span(span: Span, hide: Hide, is_first: bool) -> Span:
    """What of a span is shown: instructions, the documents that were found, what a model thought, what it said when it
    asked for tools, and of the first model call all that it was given."""
    if is_first:
        span = with_hidden(span, lambda value: redact_value(value, hide), hide)
    elif any(True for _ in instructions_of(span)):
        given = [_message(each, hide) if each.role == "system" else each for each in span.input or ()]
        system = _or_none(hide)(span.system)
        span = replace(span, system=system, input=None if span.input is None else tuple(given))
    asks = span.kind is Kind.LLM and any(
        isinstance(part, Reasoning | ToolRequest) for each in span.output or () for part in each.parts
    )
    if not asks and not span.documents:
        return span
    return replace(
        span,
        documents=tuple(redact_value(each, hide) for each in span.documents),
        output=tuple(_message(each, hide) for each in span.output or ()) if asks else span.output,
    )


def _message(message: Message, hide: Hide) -> Message:
    parts = [
        replace(part, text=hide(part.text)) if isinstance(part, Reasoning | Text) else part for part in message.parts
    ]
    return replace(message, parts=tuple(parts))

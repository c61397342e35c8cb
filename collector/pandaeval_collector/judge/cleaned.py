"""Makes the texts of a trace neutral, before any of them is put into a pack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.before import EarlierTurns
from pandaeval_collector.judge.neutral import elided, neutral
from pandaeval_otel.model import Kind, Message, Reasoning, Span, Text, ToolCall, Trace

_Clean = Callable[[str], str]


def cleaned(trace: Trace, most: int) -> Trace:
    """A trace whose texts are neutral; of a text with more than ``most`` characters, both ends are looked at."""
    clean = _cleaner(most)
    return replace(
        trace,
        agent=clean(trace.agent),
        error=None if trace.error is None else clean(trace.error),
        turns=tuple(
            replace(t, user=t.user and clean(t.user), assistant=t.assistant and clean(t.assistant)) for t in trace.turns
        ),
        tool_calls=tuple(_call(call, clean) for call in trace.tool_calls),
        tools=tuple(replace(t, name=clean(t.name), description=clean(t.description)) for t in trace.tools),
        reasoning=tuple(clean(text) for text in trace.reasoning),
        spans=tuple(_span(span, clean) for span in trace.spans),
    )


def cleaned_before(known: EarlierTurns, most: int) -> EarlierTurns:
    """What was known before a run, likewise."""
    clean = _cleaner(most)
    told, said = tuple(map(clean, known.instructions)), tuple(map(clean, known.said))
    return EarlierTurns(told, said, clean(known.last_said), missing=known.missing)


def _cleaner(most: int) -> _Clean:
    return lambda text: neutral(text if len(text) <= most else elided(text, most))


def _span(span: Span, clean: _Clean) -> Span:
    """What is shown of a span: documents that a retrieval found, and what a model said. Others pass as they are."""
    if span.documents:
        return replace(span, name=clean(span.name), documents=tuple(clean(as_text(each)) for each in span.documents))
    if span.kind is Kind.LLM and span.output:
        return replace(span, output=tuple(_message(each, clean) for each in span.output))
    return span


def _message(message: Message, clean: _Clean) -> Message:
    parts = (
        replace(part, text=clean(part.text)) if isinstance(part, Reasoning | Text) else part for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _call(call: ToolCall, clean: _Clean) -> ToolCall:
    return replace(
        call,
        name=clean(call.name),
        agent=clean(call.agent),
        arguments=clean(as_text(call.arguments)),
        result=None if call.result is None else clean(as_text(call.result)),
        error=None if call.error is None else clean(call.error),
    )

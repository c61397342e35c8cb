"""Finds an agent's thoughts, and its words between tool calls, with their times."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from pandaeval_otel.model import Kind, Message, Reasoning, Span, Trace

THOUGHT, SAID = "thought", "said"


def said_on_the_way(trace: Trace) -> tuple[str, ...]:
    """Returns the agent's words beside its tool requests, each text once: some plans appear only there."""
    return tuple(text for _, kind, text in _spoken(trace) if kind == SAID)


def thoughts(trace: Trace) -> list[tuple[int, str, str]]:
    """Returns ``(time, THOUGHT or SAID, text)`` of each thought and remark, in order, each once.

    The time is the start of the model call: all that the model requested began later, even if its tools ran within the
    call. A thought that only a later history holds comes before the next one with a known time, or before the last
    model call.
    """
    spoken = [*_spoken(trace)]
    times = {text: time for time, kind, text in spoken if kind == THOUGHT}
    time = max((span.start_ns for span in trace.spans if span.kind is Kind.LLM), default=0)
    untimed: list[tuple[int, str, str]] = []
    for text in map(str.strip, reversed(trace.reasoning)):
        time = times.get(text, time)
        if text and text not in times:
            untimed.append((time, THOUGHT, text))
    return sorted([*reversed(untimed), *spoken], key=itemgetter(0))


def _spoken(trace: Trace) -> Iterator[tuple[int, str, str]]:
    known: set[tuple[str, str]] = set()
    for span in trace.spans:
        if span.kind is not Kind.LLM:
            continue
        for time, kind, text in _outputs(span):
            if text and (kind, text) not in known:
                known.add((kind, text))
                yield time, kind, text


def _outputs(span: Span) -> Iterator[tuple[int, str, str]]:
    """Yields thoughts and words of a model call. Calls that a provider ran within it lie between its words."""
    time = span.start_ns
    for message in span.output or ():
        yield from ((time, THOUGHT, text) for text in _reasoning(message))
        if message.tool_requests:
            yield time, SAID, message.text.strip()
        time += len(message.tool_requests)


def _reasoning(message: Message) -> Iterator[str]:
    return (part.text.strip() for part in message.parts if isinstance(part, Reasoning))

"""Finds where an agent's thoughts, and what it said when it asked for tools, stand among its calls."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_otel.model import Kind, Reasoning, Span, Trace

THOUGHT, SAID = "thought", "said"


def said_on_the_way(trace: Trace) -> tuple[str, ...]:
    """Returns what the agent said when it asked for tools, each text once: a plan often stands there, and nowhere
    else."""
    return tuple(text for _, what, text in _spoken(trace) if what == SAID)


def thoughts(trace: Trace) -> list[tuple[int, str, str]]:
    """Returns ``(time, THOUGHT or SAID, text)`` of each thought and remark, in order, each once. The time is the start
    of the model call: whatever the model asked for began later, also where its tools ran within the call. A thought
    that only a later history tells stands before the next one whose time is known, else before the last model call."""
    found = [*_spoken(trace)]
    at = {text: time for time, what, text in found if what == THOUGHT}
    time = max((span.start_ns for span in trace.spans if span.kind is Kind.LLM), default=0)
    untimed: list[tuple[int, str, str]] = []
    for text in reversed(trace.reasoning):
        time = at.get(text.strip(), time)
        if text.strip() and text.strip() not in at:
            untimed.append((time, THOUGHT, text.strip()))
    return sorted([*reversed(untimed), *found], key=lambda each: each[0])


def _spoken(trace: Trace) -> Iterator[tuple[int, str, str]]:
    known: set[tuple[str, str]] = set()
    for span in trace.spans:
        for what, text in _of_span(span):
            if text.strip() and (what, text.strip()) not in known:
                known.add((what, text.strip()))
                yield span.start_ns, what, text.strip()


def _of_span(span: Span) -> Iterator[tuple[str, str]]:
    if span.kind is not Kind.LLM:
        return
    for message in span.output or ():
        yield from ((THOUGHT, part.text) for part in message.parts if isinstance(part, Reasoning))
        if message.tool_requests:
            yield SAID, message.text

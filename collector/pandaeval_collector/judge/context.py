"""An agent's prior knowledge: instructions, and the conversation in the first model call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.analysis.rules._visits import agents
from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.sanitize import escaped, one_line
from pandaeval_otel.model import (
    Kind,
    Media,
    Message,
    Reasoning,
    Span,
    Text,
    ToolCall,
    ToolRequest,
    ToolResponse,
    Trace,
    Turn,
)

USER, AGENT = "user: ", "agent: "
MOST_MESSAGES = 400
"""Maximum messages read from a conversation, newest first; more than are ever shown."""


@dataclass(frozen=True, slots=True)
class EarlierTurns:
    """An agent's prior knowledge.

    ``instructions``: distinct. ``said``: messages, calls and results, oldest first. ``last_said``: the agent's last
    message or ``""``. ``missing``: unread older messages.
    """

    instructions: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    last_said: str = ""
    missing: int = 0


def opening(trace: Trace) -> Span | None:
    """Return the first model call with captured input, if any."""
    return next((span for span in trace.spans if span.kind is Kind.LLM and span.input), None)


def before(trace: Trace) -> EarlierTurns:
    """Read the conversation before the user's last words from the first model call. Never raises."""
    instruction_texts, span = instructions(trace), opening(trace)
    if span is None or not span.input:
        return EarlierTurns(instruction_texts)
    heard = [message for message in span.input if message.role != "system"]
    until = _last_words_of_user(heard)
    earlier = heard[max(0, until - MOST_MESSAGES) : until]
    agent = [message.text for message in earlier if message.role == "assistant" and message.text]
    return EarlierTurns(
        instruction_texts,
        tuple(line for message in earlier for line in _lines(message)),
        agent[-1] if agent else "",
        until - len(earlier),
    )


def instructions(trace: Trace) -> tuple[str, ...]:
    """Return a trace's distinct instructions in order.

    For several agents: prefixed by agent name, and agents without instructions last.
    """
    acting = agents(trace.spans)
    owners: dict[str, str] = {}
    for span in trace.spans:
        for text in instructions_of(span):
            owners.setdefault(text, acting[span.span_id])
    names = dict.fromkeys([*owners.values(), *trace.agents])
    if len(names) < 2 or not owners:
        return tuple(owners)
    instruction_texts = [f"agent {one_line(name)}: {text}" if name else text for text, name in owners.items()]
    silent = [name for name in names if name and name not in owners.values()]
    return (*instruction_texts, *(f"agent {one_line(name)}: (no instructions were captured)" for name in silent))


def instructions_of(span: Span) -> Iterator[str]:
    if span.system:
        yield span.system
    yield from (message.text for message in span.input or () if message.role == "system" and message.text)


def lines_of(trace: Trace) -> tuple[str, ...]:
    """Return messages, calls and results as in :attr:`EarlierTurns.said`."""
    first, *others = trace.turns or (Turn(trace.input, trace.output),)
    # The turn of each call is not known, so all calls follow the first message.
    calls = (line for call in trace.tool_calls for line in _call_lines(call))
    lines = [*_user_lines(first), *calls, *_agent_lines(first)]
    for turn in others:
        lines += [*_user_lines(turn), *_agent_lines(turn)]
    return tuple(lines)


def _user_lines(turn: Turn) -> Sequence[str]:
    return [f"{USER}{turn.user}"] if turn.user else []


def _agent_lines(turn: Turn) -> Sequence[str]:
    return [f"{AGENT}{turn.assistant}"] if turn.assistant else []


def _call_lines(call: ToolCall) -> Iterator[str]:
    shown = escaped(as_text(call.arguments)) if call.has_arguments else "(not captured)"
    yield f"agent called {one_line(call.name)}: {shown}"
    if call.error is not None:
        yield f"it failed: {one_line(call.error)}"
    if call.has_result and call.result is not None:
        yield f"result: {as_text(call.result)}"


def joined(known: EarlierTurns, earlier: Sequence[str]) -> EarlierTurns:
    """Add lines of ``earlier`` session traces, unless the spans show the conversation."""
    if known.said or not earlier:
        return known
    agent = [line for line in earlier if line.startswith(AGENT)]
    return replace(known, said=tuple(earlier), last_said=agent[-1].removeprefix(AGENT) if agent else "")


def with_texts(message: Message, change: Callable[[str], str]) -> Message:
    parts = [replace(p, text=change(p.text)) if isinstance(p, Reasoning | Text) else p for p in message.parts]
    return replace(message, parts=tuple(parts))


def media_asked(trace: Trace) -> list[str]:
    """Return the media kinds in the user's last words, such as ``image``; ``""`` if unknown."""
    span = opening(trace)
    heard = [] if span is None else [message for message in span.input or () if message.role != "system"]
    last = heard[_last_words_of_user(heard) :]
    return [part.modality for message in last if _speaks(message) for part in message.parts if isinstance(part, Media)]


def _last_words_of_user(messages: list[Message]) -> int:
    at = max((index for index, message in enumerate(messages) if _speaks(message)), default=0)
    while at and _speaks(messages[at - 1]):
        at -= 1
    return at


def _speaks(message: Message) -> bool:
    return message.role == "user" and any(isinstance(part, Text | Media) for part in message.parts)


def _lines(message: Message) -> Iterator[str]:
    who = {"user": "user", "assistant": "agent"}.get(message.role, "result")
    for part in message.parts:
        match part:
            case Text(text=text) if text.strip():
                yield f"{who}: {text}"
            case ToolRequest(name=name, arguments=arguments):
                shown = "(not captured)" if arguments is None else escaped(as_text(arguments))
                yield f"agent called {one_line(name)}: {shown}"
            case ToolResponse(result=result):
                yield "result: (not captured)" if result is None else f"result: {as_text(result)}"
            case Media(modality=modality):
                yield f"{who}: ({modality or 'something that is no text'}, not shown)"

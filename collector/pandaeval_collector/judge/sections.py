"""What a trace says, in the order in which a judge should read it: evidence before prose, claims called so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pandaeval_collector.judge.before import Before, media_asked
from pandaeval_collector.judge.facts import CallFacts
from pandaeval_collector.judge.neutral import elided, one_line, tokens
from pandaeval_collector.judge.signature import signature
from pandaeval_otel.model import Kind, Span, ToolCall, Trace

FAILED = "FAILED:"
_MAX_TOOLS = 60
_MAX_DOCUMENTS = 20
_NOTHING = "(nothing was captured)"
_NO_TOOLS = "(no tool definitions were captured)"
_NO_CALLS = "(no tool was called)"
_NO_WORD = "something that is no text"
_NO_TEXT = "(something that is no text, such as an image: not shown)"
OURS = frozenset({_NOTHING, _NO_TOOLS, _NO_CALLS, _NO_TEXT})
"""Blocks of our own words, which need no fence."""


@dataclass(frozen=True, slots=True)
class PromptSection:
    """``blocks`` are fenced one by one; ``together``: all in one fence; ``ours``: not at all, as no word of the trace
    is in them. ``share``: its part, beside those of the others, of a budget that is too small for all. ``outset``: it
    tells what was there before the agent acted; such sections stand first."""

    title: str
    blocks: tuple[str, ...]
    share: int
    together: bool = False
    ours: bool = False
    outset: bool = False


def said_on_the_way(trace: Trace) -> tuple[str, ...]:
    """What the agent said when it asked for tools, each text once: a plan often stands there, and nowhere else."""
    said = (
        message.text.strip()
        for span in trace.spans
        for message in (span.output or () if span.kind is Kind.LLM else ())
        if message.tool_requests
    )
    return tuple(dict.fromkeys(text for text in said if text))


def sections(
    trace: Trace, facts: CallFacts, known: Before, limit: int, text_limit: int, room: int
) -> list[PromptSection]:
    """Of a trace whose texts are neutral, the ``facts`` of it as it was, and what was ``known`` before it, neutral too.
    ``limit``: most characters of an argument, a result or a thought; ``text_limit``: of any other text; ``room``:
    tokens of the conversation before. Task, steps and answer have the largest shares."""
    return [
        *_context(known, limit, text_limit, room),
        PromptSection("WHAT THE USER ASKED", tuple(_asked(trace, text_limit)), 25, outset=True),
        PromptSection("TOOLS THAT THE AGENT HAD", tuple(_tools(trace)), 5, outset=True),
        PromptSection(
            "WHAT HAPPENED, IN ORDER (recorded by the instrumentation)",
            tuple(_steps(trace, facts, limit, text_limit)),
            30,
        ),
        PromptSection("FACTS COUNTED BY CODE", (facts.text,), 10, ours=True),
        PromptSection(
            "WHAT THE AGENT THOUGHT, AND SAID ON THE WAY (claims, not evidence)",
            tuple(_texts((*trace.reasoning, *said_on_the_way(trace)), limit)),
            5,
            together=True,
        ),
        PromptSection("WHAT THE AGENT ANSWERED", tuple(_answered(trace, text_limit)), 25),
    ]


def _context(known: Before, limit: int, text_limit: int, room: int) -> Iterable[PromptSection]:
    if known.instructions:
        told = tuple(elided(each, text_limit) for each in known.instructions)
        yield PromptSection(
            "THE AGENT'S INSTRUCTIONS (context: what they forbid is rightly refused)", told, 8, outset=True
        )
    if known.said:
        title = "THE CONVERSATION BEFORE THIS RUN, OLDEST FIRST (context: true for this run, and not judged)"
        said = tuple(recent(known.said, limit, room, known.missing))
        yield PromptSection(title, said, 20, together=True, outset=True)


def recent(said: Sequence[str], limit: int, room: int, missing: int = 0) -> list[str]:
    """The newest of what was said that ``room`` tokens hold, each at most ``limit`` characters, and how many are
    missing before them; so many were ``missing`` already."""
    kept: list[str] = []
    for each in reversed(said):
        shown = elided(each, limit)
        room -= tokens(shown) + 1
        if room < 0:
            break
        kept.append(shown)
    missing += len(said) - len(kept)
    return [*([f"({missing} {EARLIER})"] if missing else []), *reversed(kept)]


EARLIER = "earlier messages and results left out"


def _asked(trace: Trace, limit: int) -> Iterable[str]:
    asked = [(at, turn) for at, turn in enumerate(trace.turns, 1) if turn.user or turn.media_only]
    texts = [_turn(trace, at) + (elided(turn.user, limit) if turn.user else _NO_TEXT) for at, turn in asked]
    if len(asked) == 1 and asked[0][1].user:
        texts += [f"(with {modality or _NO_WORD}, not shown)" for modality in media_asked(trace)]
    return texts or [_NOTHING]


def _answered(trace: Trace, limit: int) -> Iterable[str]:
    said = [
        _turn(trace, at) + elided(turn.assistant, limit) for at, turn in enumerate(trace.turns, 1) if turn.assistant
    ]
    return said or [_NOTHING]


def _turn(trace: Trace, number: int) -> str:
    """Of a conversation within one trace, which turn it is."""
    return f"turn {number}: " if len(trace.turns) > 1 else ""


def _texts(texts: Iterable[str | None], limit: int) -> Iterable[str]:
    said = [elided(text, limit) for text in texts if text]
    return said or [_NOTHING]


def _tools(trace: Trace) -> Iterable[str]:
    if not trace.tools:
        return [_NO_TOOLS]
    lines = [
        f"{elided(one_line(tool.name), 100)}{signature(tool.parameters)}: {elided(one_line(tool.description), 200)}"
        for tool in trace.tools[:_MAX_TOOLS]
    ]
    if len(trace.tools) > _MAX_TOOLS:
        lines.append(f"(… and {len(trace.tools) - _MAX_TOOLS} more)")
    return ["\n".join(lines)]


def _steps(trace: Trace, facts: CallFacts, limit: int, text_limit: int) -> Iterable[str]:
    calls = trace.tool_calls
    several = len({call.agent for call in calls}) > 1
    steps = [
        (call.start_ns, _step(index, calls, limit, text_limit, several, index + 1 in facts.failed))
        for index, call in enumerate(calls)
    ]
    found = [(span.start_ns, _retrieval(span, limit)) for span in trace.spans if _retrieved(span)]
    if found:
        steps = sorted([*steps, *found], key=lambda step: step[0])
    if not calls:
        steps.append((0, _NO_CALLS))
    if trace.error is not None:
        steps.append((0, f"the run ended with this error: {elided(one_line(trace.error), text_limit)}"))
    return [step for _, step in steps]


def _retrieved(span: Span) -> bool:
    return span.kind is Kind.RETRIEVAL and bool(span.documents)


def _retrieval(span: Span, limit: int) -> str:
    shown = [f"- {elided(one_line(each), limit)}" for each in span.documents[:_MAX_DOCUMENTS]]
    if len(span.documents) > _MAX_DOCUMENTS:
        shown.append(f"(… and {len(span.documents) - _MAX_DOCUMENTS} more)")
    return "\n".join([f"documents found by {elided(one_line(span.name), 200)}:", *shown])


def _step(index: int, calls: Sequence[ToolCall], limit: int, text_limit: int, several: bool, failed: bool) -> str:
    """``several``: agents made the calls. Names, arguments and errors stay on one line each, and the result comes last:
    no line of theirs can pass for another part of the step."""
    call = calls[index]
    parallel = any(o is not call and o.start_ns < call.end_ns and call.start_ns < o.end_ns for o in _near(calls, index))
    head = f"call {index + 1}: {elided(one_line(call.name), 200)}"
    if call.agent and several:
        head += f" by agent {elided(one_line(call.agent), 200)}"
    if parallel:
        head += " (in parallel with a neighbour)"
    shown = elided(one_line(call.arguments), limit) if call.has_arguments else "(not captured)"
    lines = [head, f"arguments: {shown}"]
    if call.error is not None:
        lines.append(f"{FAILED} {elided(one_line(call.error), text_limit)}")
    elif failed:
        lines.append(f"{FAILED} its result says so")
    if call.has_result and call.result is not None:
        lines.append(f"result: {elided(call.result, limit)}")
    elif call.error is None:
        lines.append("result: (not captured)")
    return "\n".join(lines)


def _near(calls: Sequence[ToolCall], index: int) -> Sequence[ToolCall]:
    return calls[max(0, index - 2) : index + 3]

"""What a trace says, in the order in which a judge should read it: evidence before prose, claims called so. What
happened in the run is told in order: turns, thoughts, calls with their results, documents that were found; and what
code counted of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pandaeval_collector.analysis.rules._failures import FailureSign, tells
from pandaeval_collector.analysis.rules.response_recovery import lost_at
from pandaeval_collector.judge.before import EarlierTurns, media_asked
from pandaeval_collector.judge.neutral import elided, one_line, tokens
from pandaeval_collector.judge.schemas import signature
from pandaeval_otel.model import Kind, Reasoning, ToolCall, Trace

# Finds where an agent's thoughts, and what it said when it asked for tools, stand among its calls.
THOUGHT, SAID = "thought", "said"


def said_on_the_way(trace: Trace) -> tuple[str, ...]:
    """Returns what the agent said when it asked for tools, each text once: plans often stand only there."""
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
        at = span.start_ns
        for message in (span.output or ()) if span.kind is Kind.LLM else ():
            requests = message.tool_requests
            texts = [(THOUGHT, part.text.strip()) for part in message.parts if isinstance(part, Reasoning)]
            if requests:
                texts.append((SAID, message.text.strip()))
            for each in texts:
                if each[1] and each not in known:
                    known.add(each)
                    yield at, *each
            at += len(requests)  # what a provider ran within the call stands between the words that it said


# What code counted of a run, in words of ours alone: a text of the run could add facts of its own.
_MOST = 20
"""Calls that a line names."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Facts of a trace's calls. ``failed``: positions, from 1, of those that failed; ``text``: all facts as lines."""

    failed: tuple[int, ...]
    text: str


def facts(trace: Trace) -> CallFacts:
    """Counts the facts of a trace as metrics see it, with results neither cut nor made neutral; decides what failed by
    the same predicate that limits verdicts."""
    told = [tells(call) for call in trace.tool_calls]
    failed = tuple(number for number, each in enumerate(told, 1) if each is FailureSign.FAILED)
    unsure = tuple(number for number, each in enumerate(told, 1) if each is FailureSign.UNSURE)
    return CallFacts(failed, "\n".join(_lines(trace, failed, unsure, tuple(at + 1 for at in lost_at(trace)))))


def _lines(trace: Trace, failed: tuple[int, ...], unsure: tuple[int, ...], lost: tuple[int, ...]) -> Iterator[str]:
    if len(trace.turns) > 1:
        yield f"turns: {len(trace.turns)}"
    yield f"tool calls: {len(trace.tool_calls)}"
    yield f"failed tool calls: {len(failed)}{_named(failed)}"
    if lost:
        yield f"failed, and no later call made up for it: {len(lost)}{_named(lost)}"
    if unsure:
        yield f"results that may tell of a failure, or not: {len(unsure)}{_named(unsure)}"
    yield f"model calls: {trace.llm_calls}"
    if not thoughts(trace):
        yield "thoughts, and words on the way: not captured"
    yield f"the run ended: {'with an error' if trace.error is not None else 'without an error'}"
    if trace.output is None or not trace.output.strip():
        yield f"the last answer: {'not captured' if trace.output is None else 'empty'}"
    if trace.ends_in_tool_call:
        yield "the record ends with a tool call that nothing in it answers: the run may go on elsewhere"
    if not trace.complete:
        yield "the end of the run is not in the record"
    if any("cut short" in note for note in trace.notes):
        yield "some of the texts were cut short before they were recorded"
    if trace.dropped_attributes:
        yield f"fields that were lost before they were recorded: {trace.dropped_attributes}"


def _named(numbers: Iterable[int]) -> str:
    shown = [*numbers]
    listed = ", ".join(map(str, shown[:_MOST]))
    return f" (calls {listed}{', …' if len(shown) > _MOST else ''})" if shown else ""


FAILED = "FAILED:"
_CLOCKS_SINCE = 10**18
"""Nanoseconds since 1970 (in 2001) below which a time is no clock's."""
_REMINDED = 300
"""Characters of the user's words that are told again where their turn begins: they stand whole at the outset."""


class OwnWords(str):
    """A block of our own words, which needs no fence. No text of a trace becomes one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How much of each part is shown. ``value``: most characters of an argument, a result or a thought; ``text``: of a
    user's message, an answer, an error and instructions; ``tool``: of a tool's description and of its parameters;
    ``listed``: most tools, and documents of one retrieval; ``context``: tokens of the earlier conversation."""

    value: int
    text: int
    tool: int
    listed: int
    context: int


_ANSWER, _USER, _THOUGHT, _STEP = range(4)
"""The order of pieces that have the same time."""
_Piece = tuple[int, int, str]


def clock(nanoseconds: int) -> str:
    """Writes day of the week, date and time in UTC, to the minute; ``""`` for a number that is no time of a clock."""
    if nanoseconds < _CLOCKS_SINCE:
        return ""
    return f"{datetime.fromtimestamp(nanoseconds // 10**9, UTC):%A, %Y-%m-%d %H:%M} UTC"


def steps(trace: Trace, facts: CallFacts, limits: StepLimits) -> list[str]:
    """Writes the blocks of what happened. Words and thoughts stand on one line before the call that they led to."""
    calls, several = trace.tool_calls, len({call.agent for call in trace.tool_calls}) > 1
    above = {span.span_id: span.parent_id for span in trace.spans}
    pieces: list[_Piece] = []
    since = 0
    # Of several turns the user's messages, shortened, and all answers but the last.
    for number, turn in enumerate(trace.turns if len(trace.turns) > 1 else (), 1):
        since = max(since, turn.start_ns) if number > 1 else 0
        if number > 1 and (answer := trace.turns[number - 2].assistant):
            answered = f"turn {number - 1}, the agent answered: {elided(answer, limits.text)}"
            pieces.append((since, _ANSWER, answered))
        when = clock(turn.start_ns)
        said = elided(one_line(turn.user), _REMINDED) if turn.user else "(no text was captured)"
        pieces.append((since, _USER, f"turn {number}{f' ({when})' if when else ''}, the user said: {said}"))
    pieces += [
        (time, _THOUGHT, f"{what}: {elided(one_line(text), limits.value)}") for time, what, text in thoughts(trace)
    ]
    pieces += [
        (call.start_ns, _STEP, _step(index, calls, limits, several, index + 1 in facts.failed, above))
        for index, call in enumerate(calls)
    ]
    for span in trace.spans:
        if span.kind is Kind.RETRIEVAL and span.documents:
            shown = [f"documents found by {elided(one_line(span.name), limits.text)}:"]
            shown += [f"- {elided(one_line(each), limits.value)}" for each in span.documents[: limits.listed]]
            if len(span.documents) > limits.listed:
                shown.append(f"(… and {len(span.documents) - limits.listed} more)")
            pieces.append((span.start_ns, _STEP, "\n".join(shown)))
    blocks: list[str] = []
    lines: list[str] = []
    for _, place, text in sorted(pieces, key=lambda piece: piece[:2]):
        lines.append(text)
        if place in (_STEP, _ANSWER):  # may have several lines, so nothing of the block follows
            blocks.append("\n".join(lines))
            lines = []
    blocks += ["\n".join(lines)] if lines else []
    if not trace.tool_calls:
        blocks.append(OwnWords("(no tool was called)"))
    if trace.blocked is not None:
        blocks.append(f"a guardrail stopped the run on purpose: {elided(one_line(trace.blocked[0]), limits.text)}")
    if trace.error is not None:
        blocks.append(f"the run ended with this error: {elided(one_line(trace.error), limits.text)}")
    return blocks


def _is_below(inner: ToolCall, outer: ToolCall, above: Mapping[str, str]) -> bool:
    """Returns whether a call was made within another, which delegated to an agent. ``above``: parents by span."""
    at = inner.span_id
    for _ in range(_DEEPEST_CALL):
        at = above.get(at, "")
        if not at or at == outer.span_id:
            break
    return bool(at) and at == outer.span_id


def _step(
    index: int, calls: Sequence[ToolCall], limits: StepLimits, several: bool, failed: bool, above: Mapping[str, str]
) -> str:
    """Writes one call. ``several``: several agents made calls; ``above``: as in :func:`_is_below`. Names, arguments and
    errors stay on one line each, and the result comes last, so that none of their lines can pass for another part of
    the step."""
    call, near = calls[index], calls[max(0, index - 2) : index + 3]
    meanwhile = [o for o in near if o is not call and o.start_ns < call.end_ns and call.start_ns < o.end_ns]
    parallel = any(not (_is_below(o, call, above) or _is_below(call, o, above)) for o in meanwhile)
    head = f"call {index + 1}: {elided(one_line(call.name), limits.text)}"
    if call.agent and several:
        head += f" by agent {elided(one_line(call.agent), limits.text)}"
    if parallel:
        head += " (in parallel with a neighbour)"
    shown = elided(one_line(call.arguments), limits.value) if call.has_arguments else "(not captured)"
    lines = [head, f"arguments: {shown}"]
    if call.error is not None:
        lines.append(f"{FAILED} {elided(one_line(call.error), limits.text)}")
    elif failed:
        lines.append(f"{FAILED} its result says so")
    if call.has_result and call.result is not None:
        lines.append(f"result: {elided(call.result, limits.value)}")
    elif call.error is None:
        lines.append("result: (not captured)")
    return "\n".join(lines)


# The sections of the record.
_NOTHING = OwnWords("(nothing was captured)")
_NO_TEXT = OwnWords("(something that is no text, such as an image: not shown)")
EARLIER = "earlier messages and results left out"
_DEEPEST_CALL = 64


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A titled part of the record. ``blocks`` are fenced one by one; ``together``: all in one fence; ``ours``: not at
    all, as they hold no word of the trace. ``share``: its weight in a budget that is too small for all. ``outset``: it
    describes the time before the agent acted; such sections stand first."""

    title: str
    blocks: tuple[str, ...]
    share: int
    together: bool = False
    ours: bool = False
    outset: bool = False


def sections(trace: Trace, facts: CallFacts, known: EarlierTurns, limits: StepLimits) -> list[PromptSection]:
    """Makes the sections from a trace with neutral texts, the ``facts`` of the original, and what was ``known`` before
    it, also neutral. Task, steps and answer have the largest shares; with several turns the steps, which then hold all
    answers but the last."""
    several = len(trace.turns) > 1
    asked = [(at, turn) for at, turn in enumerate(trace.turns, 1) if turn.user or turn.media_only]
    texts = [
        _turn(trace, at) + elided(turn.user, limits.text) if turn.user else OwnWords(_turn(trace, at) + _NO_TEXT)
        for at, turn in asked
    ]
    if len(asked) == 1 and asked[0][1].user:
        texts += [f"(with {modality or 'something that is no text'}, not shown)" for modality in media_asked(trace)]
    told = tuple(elided(each, limits.text) for each in known.instructions)
    title = "THE AGENT'S INSTRUCTIONS (context: what they forbid is rightly refused)"
    none = (OwnWords("(no instructions were captured)"),)
    context = [PromptSection(title, told or none, 8 if told else 4, outset=True)]
    if known.said:
        title = "THE CONVERSATION BEFORE THIS RUN, OLDEST FIRST (context: true for this run, and not judged)"
        said = tuple(recent(known.said, limits.value, limits.context, known.missing))
        context.append(PromptSection(title, said, 20, together=True, outset=True))
    signatures = [
        (f"agent {elided(one_line(', '.join(tool.agents)), limits.tool)} had " if tool.agents else "")
        + f"{elided(one_line(tool.name), limits.tool)}"
        f"{signature(tool.parameters, 2 * limits.tool)}: {elided(one_line(tool.description), limits.tool)}"
        for tool in trace.tools[: limits.listed]
    ]
    if len(trace.tools) > limits.listed:
        signatures.append(f"(… and {len(trace.tools) - limits.listed} more)")
    tools = "\n".join(signatures) if signatures else OwnWords("(no tool definitions were captured)")
    last = trace.turns[-1].assistant if trace.turns else None
    answer = _turn(trace, len(trace.turns)) + elided(last, limits.text) if last else _NOTHING
    return [
        PromptSection("WHEN THE RUN BEGAN", (clock(trace.start_ns) or "(not captured)",), 4, ours=True, outset=True),
        *context,
        PromptSection("WHAT THE USER ASKED", tuple(texts) or (_NOTHING,), 25, outset=True),
        PromptSection("TOOLS THAT THE AGENT HAD", (tools,), 5, outset=True),
        PromptSection(
            f"WHAT HAPPENED, {'TURN BY TURN, ' if several else ''}IN ORDER (calls and results are evidence; what the "
            "agent thought and said is claims)",
            tuple(steps(trace, facts, limits)),
            50 if several else 30,
        ),
        PromptSection("FACTS COUNTED BY CODE", (facts.text,), 10, ours=True),
        PromptSection("WHAT THE AGENT ANSWERED", (answer,), 15 if several else 25),
    ]


def recent(said: Sequence[str], limit: int, room: int, missing: int = 0) -> list[str]:
    """Returns the newest texts that ``room`` tokens hold, each of at most ``limit`` characters, after a note of how
    many are missing; ``missing``: how many already were."""
    kept: list[str] = []
    for each in reversed(said):
        shown = elided(each, limit)
        room -= tokens(shown) + 1
        if room < 0:
            break
        kept.append(shown)
    missing += len(said) - len(kept)
    return [*([f"({missing} {EARLIER})"] if missing else []), *reversed(kept)]


def _turn(trace: Trace, number: int) -> str:
    """Returns the number of a turn as a prefix, ``""`` in a trace with only one turn."""
    return f"turn {number}: " if len(trace.turns) > 1 else ""

"""What a trace says, in the order in which a judge should read it: evidence before prose, claims called so. What
happened in the run is told in order: turns, thoughts, calls with their results, documents that were found; and what
code counted of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from pandaeval_collector.analysis.rules._failures import FailureSign, tells
from pandaeval_collector.analysis.rules.response_recovery import lost_at, was_to_change
from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.before import EarlierTurns, media_asked
from pandaeval_collector.judge.neutral import elided, neutral, one_line, tokens
from pandaeval_collector.judge.schemas import signature
from pandaeval_otel.model import Kind, Reasoning, ToolCall, Trace, Turn

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
    """Facts of a trace's calls. ``failed``, ``changing``: positions, from 1, of those that failed, and of those that
    were to change something; ``text``: all facts as lines."""

    failed: tuple[int, ...]
    changing: frozenset[int]
    text: str


def facts(trace: Trace) -> CallFacts:
    """Counts the facts of a trace as metrics see it, with results neither cut nor made neutral; decides what failed by
    the same predicate that limits verdicts."""
    told = [tells(call) for call in trace.tool_calls]
    failed = tuple(number for number, each in enumerate(told, 1) if each is FailureSign.FAILED)
    unsure = tuple(number for number, each in enumerate(told, 1) if each is FailureSign.UNSURE)
    changing = frozenset(n for n, call in enumerate(trace.tool_calls, 1) if was_to_change(trace, call))
    lost = tuple(at + 1 for at in lost_at(trace))
    return CallFacts(failed, changing, "\n".join(_lines(trace, failed, unsure, lost)))


def _lines(trace: Trace, failed: tuple[int, ...], unsure: tuple[int, ...], lost: tuple[int, ...]) -> Iterator[str]:
    had = {tool.name for tool in trace.tools}
    if len(trace.turns) > 1:
        yield f"turns: {len(trace.turns)}"
    yield f"tool calls: {len(trace.tool_calls)}"
    unseen = sum(call.error is None and (not call.has_result or call.result is None) for call in trace.tool_calls)
    if failed or not unseen:
        yield f"failed tool calls: {len(failed)}{_named(failed)}"
    if unseen:
        yield f"calls whose result was not captured, so that they may have failed or not: {unseen}"
    if lost:
        yield f"failed, and no later call made up for it: {len(lost)}{_named(lost)}"
    if unsure:
        yield f"results that may tell of a failure, or not: {len(unsure)}{_named(unsure)}"
    if strange := [n for n, call in enumerate(trace.tool_calls, 1) if had and call.name not in had]:
        yield f"calls of tools that are not among those that the agent had: {len(strange)}{_named(strange)}"
    yield f"model calls: {trace.llm_calls}"
    if not thoughts(trace):
        yield "thoughts, and what was said between calls: not captured"
    if trace.error is not None or not trace.ends_in_tool_call:
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


class OwnWords(str):
    """A block of our own words, which needs no fence. No text of a trace becomes one."""

    __slots__ = ()


class KeptBlock(str):
    """A block of a call that was to change something: the last one to be cut."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How much of each part is shown, made harmless by ``clean``. ``value``: most characters of an argument, a result
    or a thought; ``text``: of a user's message, an answer, an error and instructions; ``tool``: of a tool's description
    and of its parameters; ``listed``: most tools, and documents of one retrieval; ``context``: tokens of the earlier
    conversation."""

    value: int
    text: int
    tool: int
    listed: int
    context: int
    clean: Callable[[str], str] = neutral

    def shown(self, value: object, most: int = 0) -> str:
        """Returns a value, or a text of at most ``most`` characters."""
        return elided(self.clean(as_text(value)), most or self.value)

    def line(self, value: object, most: int = 0) -> str:
        """Returns the same on one line, so that none of its lines passes for another part of a step."""
        return elided(one_line(self.clean(as_text(value))), most or self.value)


_MESSAGE, _THOUGHT, _STEP = range(3)
"""The order of pieces that have the same time."""


def clock(nanoseconds: int) -> str:
    """Writes day of the week, date and time in UTC, to the minute; ``""`` for a number that is no time of a clock."""
    if nanoseconds < _CLOCKS_SINCE:
        return ""
    return f"{datetime.fromtimestamp(nanoseconds // 10**9, UTC):%A, %Y-%m-%d %H:%M} UTC"


def message(prefix: str, text: str | None, limits: StepLimits, media: bool = False) -> str:
    """Writes a message behind its ``prefix``, in words of ours where it says nothing."""
    if text is None or not text.strip():
        nothing = _NO_TEXT if media else _NOTHING if text is None else _EMPTY
        return OwnWords(prefix + nothing)
    return prefix + limits.shown(text, limits.text)


def steps(trace: Trace, facts: CallFacts, limits: StepLimits) -> list[str]:
    """Writes the blocks of what happened. Words and thoughts stand on one line before the call that they led to; of
    several turns each message stands alone, at its place."""
    several = len({call.agent for call in trace.tool_calls}) > 1
    above = {span.span_id: span.parent_id for span in trace.spans}
    turns = trace.turns if len(trace.turns) > 1 else ()
    pieces: list[tuple[int, int, str]] = []
    since = 0
    for number, turn in enumerate(turns, 1):
        since = max(since, turn.start_ns) if number > 1 else 0
        if number > 1 and turns[number - 2].assistant is not None:
            answered = message(f"turn {number - 1}, the agent answered: ", turns[number - 2].assistant, limits)
            pieces.append((since, _MESSAGE, answered))
        when = clock(turn.start_ns)
        head = f"turn {number}{f' ({when})' if when else ''}, the user said: "
        pieces.append((since, _MESSAGE, message(head, turn.user, limits, turn.media_only)))
    pieces += [(time, _THOUGHT, f"{what}: {limits.line(text)}") for time, what, text in thoughts(trace)]
    for first, last, like in _folded(trace.tool_calls, turns):
        if like < first:
            text = f"call {first + 1}: as call {like + 1}"
            if last > first:
                text = f"calls {first + 1} to {last + 1}: as call {like + 1}, {last - first + 1} times more"
        else:
            text = _call(first, trace.tool_calls, limits, several, facts, above)
        pieces.append((trace.tool_calls[first].start_ns, _STEP, text))
    for span in trace.spans:
        if span.kind is Kind.RETRIEVAL and span.documents:
            shown = [f"documents found by {limits.line(span.name, limits.text)}:"]
            shown += [f"- {limits.line(each)}" for each in span.documents[: limits.listed]]
            if len(span.documents) > limits.listed:
                shown.append(f"(… and {len(span.documents) - limits.listed} more)")
            pieces.append((span.start_ns, _STEP, "\n".join(shown)))
    blocks: list[str] = []
    lines: list[str] = []
    for _, place, text in sorted(pieces, key=lambda piece: piece[:2]):
        if place == _MESSAGE:
            blocks += ["\n".join(lines), text] if lines else [text]
            lines = []
            continue
        lines.append(text)
        if place == _STEP:  # its result may have several lines, so nothing of the block follows
            blocks.append(type(text)("\n".join(lines)))
            lines = []
    blocks += ["\n".join(lines)] if lines else []
    if not trace.tool_calls:
        blocks.append(OwnWords("(no tool was called)"))
    if trace.blocked is not None:
        blocks.append(f"a guardrail stopped the run on purpose: {limits.line(trace.blocked[0], limits.text)}")
    if trace.error is not None:
        blocks.append(f"the run ended with this error: {limits.line(trace.error, limits.text)}")
    if turns:
        blocks.append(message(f"turn {len(turns)}, the agent answered: ", _last_answer(trace), limits))
    return blocks


def _folded(calls: Sequence[ToolCall], turns: Sequence[Turn]) -> Iterator[tuple[int, int, int]]:
    """Yields the first and the last index of calls in a row, within a turn, that are like an earlier one, and its
    index; of a call that is like none its own index three times."""
    known: dict[str, int] = {}

    def kind(index: int) -> tuple[int, int, bool]:
        call = calls[index]
        content = repr((call.name, call.agent, call.arguments, call.has_result, call.result, call.error))
        like = known.setdefault(content, index)
        return like, sum(turn.start_ns <= call.start_ns for turn in turns), like == index

    for (like, *_), row in groupby(range(len(calls)), kind):
        first, *others = row
        yield first, others[-1] if others else first, like


def _last_answer(trace: Trace) -> str | None:
    last = trace.turns[-1].assistant if trace.turns else None
    return trace.output if last is None and trace.output is not None and not trace.output.strip() else last


def _is_below(inner: ToolCall, outer: ToolCall, above: Mapping[str, str]) -> bool:
    """Returns whether a call was made within another, which delegated to an agent. ``above``: parents by span."""
    at = inner.span_id
    for _ in range(_DEEPEST_CALL):
        at = above.get(at, "")
        if not at or at == outer.span_id:
            break
    return bool(at) and at == outer.span_id


def _call(
    index: int,
    calls: Sequence[ToolCall],
    limits: StepLimits,
    several: bool,
    facts: CallFacts,
    above: Mapping[str, str],
) -> str:
    """Writes one call. ``several``: several agents made calls; ``above``: as in :func:`_is_below`. The result comes
    last, and is whole where the call was to change something."""
    call, near, number = calls[index], calls[max(0, index - 2) : index + 3], index + 1
    meanwhile = [o for o in near if o is not call and o.start_ns < call.end_ns and call.start_ns < o.end_ns]
    parallel = any(not (_is_below(o, call, above) or _is_below(call, o, above)) for o in meanwhile)
    head = f"call {number}: {limits.line(call.name, limits.text)}"
    if call.agent and several:
        head += f" by agent {limits.line(call.agent, limits.text)}"
    if parallel:
        head += " (in parallel with a neighbour)"
    lines = [head, f"arguments: {limits.line(call.arguments) if call.has_arguments else '(not captured)'}"]
    if call.error is not None:
        lines.append(f"{FAILED} {limits.line(call.error, limits.text)}")
    elif number in facts.failed:
        lines.append(f"{FAILED} its result says so")
    if call.has_result and call.result is not None:
        result = as_text(call.result)
        shown = limits.clean(result) if number in facts.changing else limits.shown(result)
        lines.append(f"result: {shown if result.strip() else '(empty)'}")
    elif call.error is None:
        lines.append("result: (not captured)")
    return (KeptBlock if number in facts.changing else str)("\n".join(lines))


# The sections of the record.
_NOTHING = OwnWords("(nothing was captured)")
_EMPTY = OwnWords("(captured, and empty)")
_NO_TEXT = OwnWords("(something that is no text, such as an image: not shown)")
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
    """Makes the sections of a trace, of its ``facts``, and of what was ``known`` before it, in neutral words. Task,
    steps and answer have the largest shares; of several turns the steps, which then hold all messages."""
    several = len(trace.turns) > 1
    asked = [turn for turn in trace.turns if turn.user is not None or turn.media_only]
    texts = [message("", turn.user, limits, turn.media_only) for turn in asked]
    if len(asked) == 1 and asked[0].user:
        texts += [
            f"(with {limits.line(modality, limits.text) or 'something that is no text'}, not shown)"
            for modality in media_asked(trace)
        ]
    told = tuple(elided(each, limits.text) for each in known.instructions)
    title = "THE AGENT'S INSTRUCTIONS" + (" (context: what they forbid is rightly refused)" if told else "")
    none = (OwnWords("(no instructions were captured)"),)
    context = [PromptSection(title, told or none, 8 if told else 4, outset=True)]
    if known.said:
        title = "THE CONVERSATION BEFORE THIS RUN, OLDEST FIRST (context: true for this run, and not judged)"
        said = tuple(recent(known.said, limits.value, limits.context, known.missing))
        context.append(PromptSection(title, said, 20, together=True, outset=True))
    signatures = [
        (f"agent {limits.line(', '.join(tool.agents), limits.tool)} had " if tool.agents else "")
        + f"{limits.line(tool.name, limits.tool)}{signature(tool.parameters, 4 * limits.tool)}: "
        + limits.line(tool.description, limits.tool)
        for tool in trace.tools[: limits.listed]
    ]
    if len(trace.tools) > limits.listed:
        signatures.append(f"(… and {len(trace.tools) - limits.listed} more)")
    tools = "\n".join(signatures) if signatures else OwnWords("(no tool definitions were captured)")
    answer = (message("", _last_answer(trace), limits),)
    return [
        PromptSection("WHEN THE RUN BEGAN", (clock(trace.start_ns) or "(not captured)",), 4, ours=True, outset=True),
        *context,
        PromptSection("TOOLS THAT THE AGENT HAD", (tools,), 5, outset=True),
        *([] if several else [PromptSection("WHAT THE USER ASKED", tuple(texts) or (_NOTHING,), 25, outset=True)]),
        PromptSection(
            f"WHAT HAPPENED, {'TURN BY TURN, ' if several else ''}IN ORDER (calls and results are evidence; what the "
            "agent thought and said is claims)",
            tuple(steps(trace, facts, limits)),
            70 if several else 30,
        ),
        PromptSection("FACTS COUNTED BY CODE", (facts.text,), 10, ours=True),
        *([] if several else [PromptSection("WHAT THE AGENT ANSWERED", answer, 25)]),
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
    return [*([f"({missing} earlier messages and results left out)"] if missing else []), *reversed(kept)]

"""Facts of a run, counted by code in our own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from pandaeval_collector.analysis.rules._failures import FailureSign, failure_sign
from pandaeval_collector.analysis.rules.response_recovery import lost_at, was_to_change
from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_otel.model import Kind, Message, Reasoning, Span, Trace

_MOST = 20
"""Maximum calls in a line."""
_NAME = re.compile(r"\b(?=[\w-]{0,39}\d)[\w-]{3,40}\b")
"""A word with a digit: an identifier, an amount or a date."""
_READ = 200_000
"""Maximum characters of a result searched for names."""
_LONG = 100
"""Minimum characters of a result that is shown only once if later calls return the same."""

THOUGHT, SAID = "thought", "said"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Facts about calls, by 1-based position.

    ``text``: as lines. ``used``: names that a cut result keeps. ``checks``: calls that read back a change. ``same``: an
    earlier equal result.
    """

    failed: tuple[int, ...]
    changing: frozenset[int]
    text: str
    used: Mapping[int, frozenset[str]] = field(default_factory=dict)
    checks: frozenset[int] = frozenset()
    same: Mapping[int, int] = field(default_factory=dict)


def facts(trace: Trace) -> CallFacts:
    """Count the facts of a trace, from complete results. Shares the failure predicate with verdict limits."""
    signs = [*enumerate(map(failure_sign, trace.tool_calls), 1)]
    failed = tuple(number for number, sign in signs if sign is FailureSign.FAILED)
    unsure = tuple(number for number, sign in signs if sign is FailureSign.UNSURE)
    declined = tuple(number for number, sign in signs if sign is FailureSign.DECLINED)
    changing = frozenset(n for n, call in enumerate(trace.tool_calls, 1) if was_to_change(trace, call))
    lines = [*_calls(trace, failed, unsure, declined), *_end(trace), *_losses(trace)]
    return CallFacts(failed, changing, "\n".join(lines), *_uses(trace, changing))


def _uses(trace: Trace, changing: frozenset[int]) -> tuple[dict[int, frozenset[str]], frozenset[int], dict[int, int]]:
    turn_texts = [text for turn in trace.turns for text in (turn.user, turn.assistant) if text]
    results = [as_text(call.result)[:_READ] if call.has_result else "" for call in trace.tool_calls]
    given = [frozenset(_NAME.findall(as_text(call.arguments))) for call in trace.tool_calls]
    later = [frozenset(_NAME.findall("\n".join(turn_texts)))]
    for names in reversed(given):
        later.append(later[-1] | names)
    known = set(_NAME.findall(" ".join(turn.user or "" for turn in trace.turns)))
    used, checks, same, first = dict[int, frozenset[str]](), set[int](), dict[int, int](), dict[str, int]()
    changed = frozenset[str]()
    for number, result in enumerate(results, 1):
        found = frozenset(_NAME.findall(result))
        known |= given[number - 1]
        names = (found & later[-number - 1]) - known
        known |= found
        if number in changing:
            changed = given[number - 1] | found
        elif given[number - 1] & changed:
            checks.add(number)
            names |= found & changed
        if names:
            used[number] = names
        if len(result) >= _LONG and first.setdefault(result, number) < number:
            same[number] = first[result]
    return used, frozenset(checks), same


def _calls(trace: Trace, failed: tuple[int, ...], unsure: tuple[int, ...], declined: tuple[int, ...]) -> Iterator[str]:
    calls = trace.tool_calls
    if len(trace.turns) > 1:
        yield f"turns: {len(trace.turns)}"
    yield f"tool calls: {len(calls)}"
    unseen = sum(call.error is None and (not call.has_result or call.result is None) for call in calls)
    if failed or not unseen:
        yield f"failed tool calls: {len(failed)}{_named(failed)}"
    if unseen:
        yield f"calls whose result was not captured, so that they may have failed or not: {unseen}"
    if lost := [at + 1 for at in lost_at(trace)]:
        yield f"failed, and no later call made up for it: {len(lost)}{_named(lost)}"
    if unsure:
        yield f"results that may tell of a failure, or not: {len(unsure)}{_named(unsure)}"
    if declined:
        yield f"calls that a person declined, so that they were not made: {len(declined)}{_named(declined)}"
    if strange := _strange(trace):
        yield f"calls of tools that are not among those that the agent had: {len(strange)}{_named(strange)}"


def _strange(trace: Trace) -> list[int]:
    names = {tool.name for tool in trace.tools}
    return [number for number, call in enumerate(trace.tool_calls, 1) if names and call.name not in names]


def _end(trace: Trace) -> Iterator[str]:
    yield f"model calls: {trace.llm_calls}"
    if not thoughts(trace):
        yield "thoughts, and what was said between calls: not captured"
    if trace.truncated:
        yield "the last answer was cut off at the model's token limit"
    if trace.stopped:
        yield "the run ended: stopped by the user or the application"
    elif trace.error is not None:
        yield "the run ended: with an error"
    elif not trace.ends_in_tool_call:
        yield "the run ended: without an error"
    if trace.output is None:
        yield "the last answer: not captured"
    elif not trace.output.strip():
        yield "the last answer: empty"
    if trace.ends_in_tool_call:
        yield "the record ends with a tool call that nothing in it answers: the run may go on elsewhere"


def _losses(trace: Trace) -> Iterator[str]:
    if not trace.complete:
        yield "the end of the run is not in the record"
    if any("cut short" in note for note in trace.notes):
        yield "some of the texts were cut short before they were recorded"
    if trace.dropped_attributes:
        yield f"fields that were lost before they were recorded: {trace.dropped_attributes}"


def _named(numbers: Iterable[int]) -> str:
    names = [*map(str, numbers)]
    if not names:
        return ""
    more = ", …" if len(names) > _MOST else ""
    return f" (calls {', '.join(names[:_MOST])}{more})"


def said_on_the_way(trace: Trace) -> tuple[str, ...]:
    return tuple(text for _, kind, text in _spoken(trace) if kind == SAID)


def thoughts(trace: Trace) -> list[tuple[int, str, str]]:
    """Return ``(time, THOUGHT or SAID, text)`` of distinct thoughts and remarks, in order."""
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
    time = span.start_ns
    for message in span.output or ():
        yield from ((time, THOUGHT, text) for text in _reasoning(message))
        if message.tool_requests:
            yield time, SAID, message.text.strip()
        time += len(message.tool_requests)


def _reasoning(message: Message) -> Iterator[str]:
    return (part.text.strip() for part in message.parts if isinstance(part, Reasoning))

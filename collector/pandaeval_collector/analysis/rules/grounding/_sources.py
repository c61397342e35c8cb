"""What an agent had, and since when: the user's words, instructions, history, results, documents, tool definitions.

What it wrote itself in this trace is none of it, except the arguments of calls: that it made them is a fact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pandaeval_collector.analysis.rules.grounding._value import fold
from pandaeval_otel.model import Kind, Message, OtherPart, Reasoning, Span, Text, ToolResponse, Trace
from pandaeval_otel.model.message import any_hidden
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.speech import is_user_turn

# Whether something that the agent may have had was not captured.
BEFORE = "the conversation before was not captured"
INSTRUCTIONS = "the agent's instructions were not captured"
_DOTS = ("...", "…")
_CUT = re.compile(r"truncated[^\n]{0,40}\Z", re.IGNORECASE)
_CLOSED = {"{": "}", "[": "]"}


def not_captured(trace: Trace) -> str | None:
    """Says which part of this trace itself is missing (results, messages, the user's words); ``None`` if nothing is."""
    calls = trace.tool_calls
    if [call for call in calls if not call.has_result and call.error is None]:
        return "results of tools were not captured"
    if any_cut([call.result for call in calls if call.has_result]):
        return "results of tools were captured in part"
    if any_hidden(chain(*[span.input for span in trace.spans if span.kind is Kind.LLM and span.input])):
        return "messages were captured in part"
    if (trace.input is None and not trace.turns) or None in [turn.user for turn in trace.turns]:
        return "the user's words were not captured"
    return None


def any_cut(results: Sequence[Any]) -> bool:
    """Returns whether a result breaks off: it ends in dots, says that it is truncated, or is JSON without its end."""
    for result in results:
        if not isinstance(result, str):
            continue
        text = result.strip()
        closing = _CLOSED.get(text[:1])
        if closing is not None and text[1:2] in '"{[' and closing not in text:
            return True
        if text.endswith(_DOTS) or ("truncated" in text[-60:].lower() and _CUT.search(text[-60:]) is not None):
            return True
    return False


def hidden(trace: Trace, before: Before | None = None) -> str | None:
    """Says what is missing; ``None`` where the agent had nothing beyond what the trace shows and ``before``, what the
    earlier traces of its session held.

    Without ``before``, a first call in a session with neither instructions nor history may be the middle of a
    conversation. The first trace of a session is whole, if its first call begins with the user's message.
    """
    missing = not_captured(trace)
    if missing is not None:
        return missing
    known = before.responses if before is not None else ()
    if _kept_elsewhere(trace) and trace.continues not in known and not shows_history(trace):
        return BEFORE
    if before is not None and not before.first:
        return before.hidden
    models = [span for span in trace.spans if span.kind is Kind.LLM]
    goes_on = trace.session_id is not None or bool(trace.continues)
    if not goes_on or not models or _whole(models):
        return None
    begins = [message.role for message in models[0].input or ()][:1] == ["user"]
    return None if before is not None and begins else BEFORE


def instructed(trace: Trace) -> bool:
    """Whether the spans hold instructions."""
    for span in trace.spans:
        if span.system:
            return True
        for message in span.input or ():
            if message.role == "system":
                return True
    return False


def _kept_elsewhere(trace: Trace) -> bool:
    """Returns whether the trace continues a response whose history the provider keeps."""
    return bool(trace.continues) and not is_history(trace.continues)


def shows_history(trace: Trace) -> bool:
    """Returns whether the spans hold a conversation before the last user message. If they do, it is whole; if not,
    there may still have been one, as many frameworks do not show it."""
    if len(trace.turns) > 1:
        return True
    inputs = [span.input for span in trace.spans if span.input and len(span.input) > 1 and span.kind is not Kind.TOOL]
    return any(map(_answered_before, inputs))


def _answered_before(messages: Sequence[Message]) -> bool:
    answered = False
    for message in messages:
        if answered and is_user_turn(message):
            return True
        answered = answered or message.role == "assistant"
    return False


def _whole(models: list[Span]) -> bool:
    """Returns whether the first call shows instructions or history, as it does for conversations captured whole."""
    if models[0].system:
        return True
    return any(message.role in ("system", "assistant") for message in models[0].input or ())


MOST_CHARS = 400_000
"""Characters of all sources together; the rest is not read, which is noted."""
MOST_VALUES = 10_000
"""Runs of digits of all sources together, likewise: each may be a value, and takes as long as some hundred letters."""
_DIGITS = re.compile(r"[0-9]+")
_LONGEST_JSON = 200_000
_DEPTH = 40
USER, TOLD, RESULT, CALL = "user", "told", "result", "call"
"""Kinds of sources: the user; instructions, history, definitions; results and documents; arguments of a call."""


@dataclass(slots=True)
class Source:
    """A folded text that the agent had from ``at`` on (:func:`moment`). ``counts``: lengths of the lists in it;
    ``raw``: the text or JSON value as it was captured."""

    who: str
    at: int
    text: str
    counts: tuple[int, ...] = ()
    raw: Any = None


@dataclass(slots=True)
class Before:
    """What the earlier traces of a session held, oldest first. ``hidden``: why the agent may have known more than is
    ``found``; ``responses``: the ids of their model responses."""

    found: Sequence[tuple[str, Any]] = ()
    hidden: str | None = None
    responses: frozenset[str] = frozenset()
    first: bool = False
    """Whether there is no earlier trace."""
    instructed: bool = False
    """Whether an earlier trace held instructions."""


@dataclass(slots=True)
class Sources:
    """All sources of a trace. ``cut``: not all was read; ``results``: the number of results and documents."""

    found: list[Source] = field(default_factory=list)
    cut: bool = False
    results: int = 0
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _raw: set[tuple[str, str]] = field(default_factory=set)
    _chars: int = 0
    _values: int = 0

    def add(self, who: str, at: int, value: Any) -> None:
        """Adds a text or JSON value, unless it is already there. Called in order of time."""
        if value is None or value == "":
            return
        if isinstance(value, str):
            if (who, value) in self._raw:
                return
            self._raw.add((who, value))
        counts: list[int] = []
        text = "\n".join(leaves(value, counts))
        key = who, text
        if not text or key in self._seen:
            return
        values = sum(1 for _ in _DIGITS.finditer(text))
        if self._chars + len(text) > MOST_CHARS or self._values + values > MOST_VALUES:
            self.cut = True
            return
        self._seen.add(key)
        self._chars += len(text)
        self._values += values
        self.results += who == RESULT
        self.found.append(Source(who, at, fold(text), tuple(counts), value))


def sources(trace: Trace, before: Iterable[tuple[str, Any]] = ()) -> Sources:
    """Reads all that the trace's spans show, and ``before``, what earlier traces of its session held."""
    dated: list[tuple[int, str, Any]] = [(0, USER, trace.input)]
    starts = {span.span_id: span.start_ns for span in trace.spans} if len(trace.turns) > 1 else {}
    dated.extend((starts.get(turn.span_id, 0), USER, turn.user) for turn in trace.turns)
    dated.extend((0, TOLD, [tool.name, tool.description, tool.parameters]) for tool in trace.tools)
    seen: set[int] = set()
    for span in trace.spans:
        dated.extend(_of_span(span, seen))
    for call in trace.tool_calls:
        dated.append((call.start_ns, CALL, call.arguments))
        if call.has_result:
            dated.append((call.end_ns, RESULT, call.result))
    dated.sort(key=lambda each: moment(each[0], each[1]))
    found = Sources()
    for who, value in before:
        found.add(who, 0, value)
    for at, who, value in dated:
        found.add(who, moment(at, who), value)
    return found


def moment(at_ns: int, who: str = RESULT) -> int:
    """Converts a time to half nanoseconds: arguments of a call are known just after it began, all else at its time."""
    return 2 * at_ns + (who == CALL)


def leaves(value: Any, counts: list[int], depth: int = _DEPTH) -> Iterator[str]:
    """Yields the keys and values of JSON, also of JSON in texts, as texts; adds lengths of lists to ``counts``."""
    if depth == 0:
        return
    if isinstance(value, str):
        inner = parsed(value)
        if inner is not None:
            yield from leaves(inner, counts, depth - 1)
        else:
            yield value.replace("\\n", "\n") if "\\n" in value else value
    elif isinstance(value, dict):
        counts.append(len(value))
        for key, item in value.items():
            yield str(key)
            yield from leaves(item, counts, depth - 1)
    elif isinstance(value, list | tuple):
        counts.append(len(value))
        for item in value:
            yield from leaves(item, counts, depth - 1)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def parsed(text: str) -> Any:
    """Parses a text that is a JSON object or list; else returns ``None``."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"{', '"[')) or len(stripped) > _LONGEST_JSON:
        return None
    try:
        found = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list | str) and found != text else None


def _of_span(span: Span, seen: set[int]) -> Iterator[tuple[int, str, Any]]:
    if span.system:
        yield 0, TOLD, span.system
    if span.documents:
        yield span.end_ns, RESULT, list(span.documents)
    if span.kind is Kind.RETRIEVAL and span.result is not None:
        yield span.end_ns, RESULT, span.result.value
    for value in span.attributes.values():
        yield 0, TOLD, value
    if span.kind is Kind.TOOL or not span.input:
        return
    last = max((index for index, message in enumerate(span.input) if message.role == "user"), default=-1)
    for index, message in enumerate(span.input):
        if id(message) not in seen and (message.role != "assistant" or index < last):
            seen.add(id(message))
            yield from _of_message(message, span.start_ns)


def _of_message(message: Message, at: int) -> Iterator[tuple[int, str, Any]]:
    who = {"user": USER, "tool": RESULT}.get(message.role, TOLD)
    for part in message.parts:
        if isinstance(part, Text):
            yield at, who, part.text
        elif isinstance(part, ToolResponse):
            yield at, RESULT, part.result
        elif isinstance(part, OtherPart):
            yield at, who, part.value
        elif not isinstance(part, Reasoning) and message.role == "assistant":
            yield at, TOLD, getattr(part, "arguments", None)

"""Packed grounding data of a trace for later traces of its session: user messages, answers, calls and documents."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from json.encoder import encode_basestring_ascii as _text
from typing import Any, Literal

import orjson
import zstandard

from pandaeval_otel.model import Kind, Message, OtherPart, Text, ToolRequest, ToolResponse, Trace
from pandaeval_otel.model.message import any_hidden
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.speech import is_user_turn

Whose = Literal["user", "told", "result", "call", "instructions"]
"""A value's origin: the user; the agent; a result or document; call arguments; instructions, tool definitions or span
attributes.
"""
_OF_ROLE: dict[str, Whose] = {"user": "user", "tool": "result", "assistant": "told"}
BEFORE = "the earlier conversation was not captured"
_MORE = "the session has more earlier traces than are read"
MOST_TRACES = 32
"""Earlier traces of a session that are read at most. If there are as many, there may be more."""
_MOST_CHARS = 24_000
"""Characters of JSON per trace. A longer text is reduced to words that may be values."""
_MOST_UNPACKED = 1 << 20
_PLAIN_WORDS = re.compile(r"(?<!\S)(?:[a-z.,;:!?'\"(){}\[\]\\\-]++(?:\s++|\Z))++")
"""Words of prose without values, whole lines at a time."""
_CUT = re.compile(r"(?:\.\.\.|…|truncated[^\n]{0,40})\Z", re.IGNORECASE)
"""How a text ends that breaks off."""


@dataclass(slots=True)
class Before:
    """Content of earlier session traces, oldest first. ``hidden``: why the agent may have known more."""

    found: Sequence[tuple[Whose, Any]] = ()
    hidden: str | None = None
    responses: frozenset[str] = frozenset()
    first: bool = False
    """Whether there is no earlier trace."""


def pack(trace: Trace) -> bytes:
    kept: dict[str, None] = {}
    left, is_cut = _MOST_CHARS, False
    told: list[tuple[Whose, Any]] = [("told", trace.output), *(("told", turn.assistant) for turn in trace.turns)]
    for who, value in [*((who, value) for _, who, value in held(trace)), *told]:
        text = spelled(value) if value else ""
        packed = _text(text)
        if len(packed) > left:
            text = _PLAIN_WORDS.sub("", text)
            packed = _text(text)
        if len(packed) > left:
            is_cut = True
            continue
        entry = f'["{who}", {packed}]'
        if text and entry not in kept:
            kept[entry] = None
            left -= len(packed)
    why = _not_captured(trace) or (_MORE if is_cut else None)
    began = shows_history(trace) or (bool(trace.continues) and not is_history(trace.continues))
    head = json.dumps([why, began])[:-1]
    return _own.compress(f"{head}, [{', '.join(kept)}]]".encode())


def spelled(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, str).decode()
    except TypeError:  # what orjson refuses: keys that are no texts, large numbers, halves of surrogates
        return json.dumps(value, default=str, skipkeys=True, ensure_ascii=False)


def before(packed: Sequence[bytes], responses: frozenset[str]) -> Before:
    """Unpack earlier session traces, oldest first; ``b""`` for a trace without content."""
    found: list[tuple[Whose, Any]] = []
    missing = _MORE if len(packed) >= MOST_TRACES else None
    for index, each in enumerate(packed):
        if not each:
            missing = missing or BEFORE
            continue
        why, began_before, *_, kept = json.loads(_own.decompress(each, _MOST_UNPACKED))
        missing = missing or why or (BEFORE if began_before and not index else None)
        found.extend((who, value) for who, value in kept)
    return Before(found, missing, responses, first=not packed)


def held(trace: Trace) -> Iterator[tuple[int, Whose, Any]]:
    """Yield texts that the agent received and found in this trace, with times."""
    yield 0, "user", trace.input
    starts = {span.span_id: span.start_ns for span in trace.spans} if len(trace.turns) > 1 else {}
    for turn in trace.turns:
        yield starts.get(turn.span_id, 0), "user", turn.user
    for call in trace.tool_calls:
        yield call.start_ns, "call", call.arguments
        if call.has_result:
            yield call.end_ns, "result", call.result
    for span in trace.spans:
        if span.documents:
            yield span.end_ns, "result", list(span.documents)
        if span.kind is Kind.RETRIEVAL and span.result is not None:
            yield span.end_ns, "result", span.result.value


def shown(trace: Trace) -> Iterator[tuple[int, Whose, Any]]:
    """Yield instructions, tool definitions and messages of the spans, with times."""
    for tool in trace.tools:
        yield 0, "instructions", [tool.name, tool.description, tool.parameters]
    seen: set[int] = set()
    before: tuple[Message, ...] = ()
    for span in trace.spans:
        for value in (span.system, *span.attributes.values()):
            yield 0, "instructions", value
        if span.input and span.kind is not Kind.TOOL:
            begin = len(before) if span.input[: len(before)] == before else 0
            yield from _of_messages(span.input, begin, span.start_ns, seen)
            before = span.input


def _of_messages(messages: Sequence[Message], begin: int, at: int, seen: set[int]) -> Iterator[tuple[int, Whose, Any]]:
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    for index, message in enumerate(messages[begin:], begin):
        if id(message) in seen or (message.role == "assistant" and index > last):
            continue
        seen.add(id(message))
        who = _OF_ROLE.get(message.role, "instructions")
        for part in message.parts:
            if (held := _of_part(part, who)) is not None:
                yield at, *held


def _of_part(part: object, who: Whose) -> tuple[Whose, Any] | None:
    match part:
        case Text():
            return who, part.text
        case ToolResponse():
            return "result", part.result
        case ToolRequest():
            return "call", part.arguments
        case OtherPart():
            return "instructions" if who == "told" else who, part.value
    return None


def hidden(trace: Trace, earlier: Before | None = None) -> str | None:
    """Return the missing content; ``None`` if the trace and ``earlier`` session content are complete."""
    missing = _not_captured(trace)
    if missing is not None:
        return missing
    shown = shows_history(trace)
    known = earlier.responses if earlier is not None else ()
    if bool(trace.continues) and not is_history(trace.continues) and trace.continues not in known and not shown:
        return BEFORE
    if earlier is not None and not earlier.first:
        return None if shown and earlier.hidden == BEFORE else earlier.hidden
    first = next((span for span in trace.spans if span.kind is Kind.LLM), None)
    if first is None or not (trace.session_id is not None or trace.continues):
        return None
    roles = [message.role for message in first.input or ()]
    if first.system or "system" in roles or "assistant" in roles:  # as of a conversation that was captured whole
        return None
    return None if earlier is not None and roles[:1] == ["user"] else BEFORE


def _not_captured(trace: Trace) -> str | None:
    if [call for call in trace.tool_calls if not call.has_result and call.error is None]:
        return "tool results were not captured"
    if any(map(_is_cut, [call.result for call in trace.tool_calls if call.has_result])):
        return "tool results were captured only in part"
    if any_hidden(chain(*[span.input for span in trace.spans if span.kind is Kind.LLM and span.input])):
        return "messages were captured only in part"
    if (trace.input is None and not trace.turns) or None in [turn.user for turn in trace.turns]:
        return "the messages of the user were not captured"
    return None


def _is_cut(result: Any) -> bool:
    if isinstance(result, list):
        return any(isinstance(each, dict) and "encrypted_content" in each for each in result)
    if not isinstance(result, str):
        return False
    text = result.strip()
    closing = {"{": "}", "[": "]"}.get(text[:1])
    if closing is not None and text[1:2] in '"{[' and closing not in text:
        return True
    return _CUT.search(text[-60:]) is not None


def shows_history(trace: Trace) -> bool:
    """Return whether spans hold an exchange before the last user message, beyond the agent's greeting."""
    if len(trace.turns) > 1:
        return True
    for span in trace.spans:
        asked = answered = False
        for message in span.input or () if span.kind is not Kind.TOOL else ():
            if message.role == "assistant":
                answered = asked
            elif message.role == "user" and is_user_turn(message):
                if answered:
                    return True
                asked = True
    return False


def shows_results(trace: Trace) -> bool:
    messages = next((span.input for span in trace.spans if span.kind is Kind.LLM and span.input), ())
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=0)
    return any(message.role == "tool" for message in messages[:last])


class _Zstd(threading.local):
    """A cached compressor and decompressor per thread."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=1).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_own = _Zstd()

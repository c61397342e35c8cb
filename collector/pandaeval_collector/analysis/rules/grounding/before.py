"""Packed grounding data of a trace for later traces of its session: user messages, answers, calls and documents."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import orjson
import zstandard

from pandaeval_otel.model import Kind, Message, OtherPart, Text, ToolRequest, ToolResponse, Trace
from pandaeval_otel.model.message import any_hidden
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.speech import is_user_turn

Origin = Literal["user", "told", "result", "call", "instructions"]
"""A value's origin: the user; the agent; a result or document; call arguments; instructions, tool definitions or span
attributes.
"""
_OF_ROLE: dict[str, Origin] = {"user": "user", "tool": "result", "assistant": "told"}
EARLIER_NOT_CAPTURED = "the earlier conversation was not captured"
_MORE = "the earlier traces of the session were not read completely"
MOST_TRACES = 32
"""Maximum earlier traces of a session that are read. If there are as many, there may be more."""
_MOST_CHARS = 24_000
"""Maximum characters per trace. Texts beyond this limit are left out."""
_MOST_UNPACKED = 1 << 20
_CUT = re.compile(r"(?:\.\.\.|…|truncated[^\n]{0,40})\Z", re.IGNORECASE)
"""Ends of texts that were cut off."""


@dataclass(slots=True)
class EarlierContent:
    """Content of earlier session traces, oldest first. ``hidden``: why the agent may have known more."""

    found: Sequence[tuple[Origin, Any]] = ()
    hidden: str | None = None
    responses: frozenset[str] = frozenset()
    first: bool = False
    """Whether there is no earlier trace."""


def pack(trace: Trace) -> bytes:
    kept: dict[tuple[Origin, str], None] = {}
    left, is_cut = _MOST_CHARS, False
    answers: list[tuple[Origin, Any]] = [("told", trace.output), *(("told", turn.assistant) for turn in trace.turns)]
    for who, value in (*received_content(trace), *answers):
        entry = who, json_text(value) if value else ""
        if not entry[1] or entry in kept:
            continue
        if len(entry[1]) > left:
            is_cut = True
            continue
        kept[entry] = None
        left -= len(entry[1])
    why = _not_captured(trace) or (_MORE if is_cut else None)
    began = shows_history(trace) or (bool(trace.continues) and not is_history(trace.continues))
    return _own.compress(json.dumps([why, began, [*kept]]).encode())


def json_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, str).decode()
    except TypeError:  # orjson refuses keys that are not texts, large numbers and lone surrogates
        return json.dumps(value, default=str, skipkeys=True, ensure_ascii=False)


def before(packed: Sequence[bytes], responses: frozenset[str]) -> EarlierContent:
    """Unpack earlier session traces, oldest first; ``b""`` for a trace without content."""
    found: list[tuple[Origin, Any]] = []
    missing = _MORE if len(packed) >= MOST_TRACES else None
    for index, each in enumerate(packed):
        if not each:
            missing = missing or EARLIER_NOT_CAPTURED
            continue
        why, began_before, *_, kept = json.loads(_own.decompress(each, _MOST_UNPACKED))
        missing = missing or why or (EARLIER_NOT_CAPTURED if began_before and not index else None)
        found.extend((who, value) for who, value in kept)
    return EarlierContent(found, missing, responses, first=not packed)


def received_content(trace: Trace) -> Iterator[tuple[Origin, Any]]:
    """Yield the texts that the agent received and found in this trace."""
    yield "user", trace.input
    for turn in trace.turns:
        yield "user", turn.user
    for call in trace.tool_calls:
        yield "call", call.arguments
        if call.has_result:
            yield "result", call.result
    for span in trace.spans:
        yield "result", list(span.documents)
        if span.kind is Kind.RETRIEVAL and span.result is not None:
            yield "result", span.result.value


def instruction_content(trace: Trace) -> Iterator[tuple[Origin, Any]]:
    """Yield the agent's instructions, definitions of tools and messages on the spans."""
    for tool in trace.tools:
        yield "instructions", [tool.name, tool.description, tool.parameters]
    before: tuple[Message, ...] = ()
    for span in trace.spans:
        for value in (span.system, *span.attributes.values()):
            yield "instructions", value
        if span.input and span.kind is not Kind.TOOL:
            begin = len(before) if span.input[: len(before)] == before else 0
            yield from _of_messages(span.input, begin)
            before = span.input


def _of_messages(messages: Sequence[Message], begin: int) -> Iterator[tuple[Origin, Any]]:
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    for index, message in enumerate(messages[begin:], begin):
        who = _OF_ROLE.get(message.role, "instructions")
        for part in message.parts if who != "told" or index < last else ():
            match part:
                case Text():
                    yield who, part.text
                case ToolResponse():
                    yield "result", part.result
                case ToolRequest():
                    yield "call", part.arguments
                case OtherPart():
                    yield "instructions" if who == "told" else who, part.value


def hidden(trace: Trace, earlier: EarlierContent | None = None) -> str | None:
    """Return the missing content; ``None`` if the agent had only the trace and ``earlier``, the earlier session
    content. Without ``earlier``, a first call without instructions or history may be mid-conversation.
    """
    missing, has_history = _not_captured(trace), shows_history(trace)
    if missing is not None or has_history:
        return missing or (earlier.hidden if earlier is not None and earlier.hidden != EARLIER_NOT_CAPTURED else None)
    known = earlier.responses if earlier is not None else ()
    if trace.continues and not is_history(trace.continues) and trace.continues not in known:
        return EARLIER_NOT_CAPTURED
    if earlier is not None:
        return earlier.hidden
    first = next((span for span in trace.spans if span.kind is Kind.LLM), None)
    if first is None or trace.session_id is None or first.system:
        return None
    return None if {"system", "assistant"} & {message.role for message in first.input or ()} else EARLIER_NOT_CAPTURED


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

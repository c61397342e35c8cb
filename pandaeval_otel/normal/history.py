"""Finds out which conversation stands in the history that a trace's model calls hold, and which one it leaves behind:
where no span names a session and the application sends the history itself, nothing else tells which turns belong
together.

A conversation is what users said and what was last answered to each, without instructions, tool calls and results:
frameworks leave those out of later histories or change them. Conversations that many begin alike (a greeting, a canned
introduction) are none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from pandaeval_otel.model import Kind, Message, OtherPart, Span, Text, Turn
from pandaeval_otel.normal.responses import may_continue
from pandaeval_otel.normal.speech import answered, is_cut, is_user_turn

PREFIX = "history:"
"""What the id of a conversation begins with, among ids of responses."""
_ASKED, _ANSWERED, _ANSWERED_WITHOUT_NUMBERS = 20, 40, 200
"""Bytes of UTF-8 that users and answers of a conversation have at least, by which it is told from others."""
_CALLS = 3
"""So many model calls are asked for the history: what a router or a rewriter is sent has none."""
_LONGEST = 2000
"""Characters of a text by which it is told from others."""
_DIGIT = re.compile(r"\d")
_NAMED = re.compile(
    rb"\n(?:\x16gen_ai\.conversation\.id|\nsession\.id|\x14pandaeval\.session\.id|\x13langfuse\.session\.id)"
    rb"\x12.\n[^\x00](?!resp_)",
    re.DOTALL,
)
"""The attributes that most often name a session, as they are encoded."""

Exchange = tuple[str, str]
"""What the user said, and the last thing that was said to it; ``""``: nothing."""


def is_history(id_: str) -> bool:
    """Whether an id is that of a conversation, and no response's."""
    return id_.startswith(PREFIX)


def may_be_linked(spans: bytes) -> bool:
    """Whether a trace with these spans, as they came, may go on from another trace that names no session or leave
    something for one to go on from: as far as a look at the bytes can tell."""
    return _NAMED.search(spans) is None or may_continue(spans)


def conversations(
    models: Sequence[Span], roots: Iterable[Span], turns: Sequence[Turn], whose: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    """The conversation at the end of a trace, in one or two readings, and the one that it goes on from; nothing and
    ``""`` for what was not captured, or could be anybody's.

    ``models``: its model calls in order of start; ``roots`` are read where there are none. ``whose``: service, agent
    and user, by which equal conversations differ; and they do by the instrumentation that recorded them.
    """
    speakers = [span for span in models if span.input] or [span for span in roots if span.input]
    if not speakers:
        return (), ""
    whose = (*whose, speakers[0].scope)
    before = next((told for span in speakers[:_CALLS] if (told := _exchanges(span.input or ())[:-1])), [])
    found: dict[str, None] = {}
    if all(turn.user is not None and turn.assistant for turn in turns):
        found[_id([*before, *[(_plain(turn.user or ""), _plain(turn.assistant or "")) for turn in turns]], whose)] = (
            None
        )
    found[_id(_as_called(speakers), whose)] = None
    found.pop("", None)
    return tuple(found), _id(before, whose)


def _as_called(speakers: Sequence[Span]) -> list[Exchange]:
    """The conversation up to the answer of the last model call, in the words in which a next call is told them."""
    last = max(speakers, key=lambda span: (span.end_ns, span.start_ns))
    told = _exchanges(last.input or ())
    said = answered(last.output).text if last.kind is Kind.LLM and last.error is None and told else None
    return [*told[:-1], (told[-1][0], _plain(said))] if said else []


def _exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """In order; none of a list that was captured in part."""
    found: list[Exchange] = []
    open_ = False
    if is_cut(messages):
        return []
    for message in messages:
        if message.role == "system":
            continue
        for part in message.parts:
            if type(part) is OtherPart and message.hidden:
                return []
        if is_user_turn(message):
            text = _plain(_words(message))
            if open_:
                found[-1] = f"{found[-1][0]} {text}", ""
            else:
                found.append((text, ""))
            open_ = True
            continue
        open_ = False
        text = _words(message) if message.role == "assistant" else ""
        if text:
            found[-1:] = [(found[-1][0] if found else "", _plain(text))]
    return found


def _words(message: Message) -> str:
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is Text:
        return parts[0].text
    return message.text


def _plain(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


def _id(told: Sequence[Exchange], whose: tuple[str, ...]) -> str:
    if not told or not told[-1][1]:
        return ""
    found = hashlib.blake2b("\0".join(whose).encode(errors="surrogatepass"), digest_size=16)
    asked, said, counted = 0, 0, False
    for user, answer in told:
        asked += _add(user, found) + (_ASKED if _DIGIT.search(user) else 0)
        said = max(said, _add(answer, found))
        counted = counted or _DIGIT.search(answer) is not None
    if asked < _ASKED or said < (_ANSWERED if counted else _ANSWERED_WITHOUT_NUMBERS):
        return ""
    return PREFIX + found.hexdigest()


def _add(text: str, found: hashlib.blake2b) -> int:
    encoded = text.encode(errors="surrogatepass")
    found.update(len(encoded).to_bytes(8, "big"))
    found.update(encoded)
    return len(encoded)

"""Finds a trace's conversation by session id, continued response, or the history in model calls.

Responses link turns if the provider keeps the history (OpenAI's Responses API). History links turns if no span names a
session. It consists of user messages and the last answer to each. Openings that many conversations share do not count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from pandaeval_otel.model import Kind, Message, OtherPart, Span, Turn
from pandaeval_otel.normal.speech import answer_of, is_cut, is_user_turn
from pandaeval_otel.normal.tree import Tree

MAX_ID_CHARS = 256
MAX_GIVEN = 4
_KEPT = "resp_"
_CONTINUES = re.compile(rb'previous_response\.id|previous_response_id"\s*:\s*"|conversation\.id.{1,8}?resp_', re.DOTALL)
PREFIX = "history:"
"""Prefix of conversation ids among response ids."""
_ASKED, _ANSWERED, _ANSWERED_WITHOUT_NUMBERS = 20, 40, 200
"""Minimum bytes of UTF-8 (user text, answer) that distinguish a conversation."""
_CALLS = 3
"""Number of model calls searched for a history. The first may be a router or rewriter without history."""
_LONGEST = 2000
"""Characters of a text that are compared."""
_DIGIT = re.compile(r"\d")
_NAMED = re.compile(
    rb"\n(?:\x16gen_ai\.conversation\.id|\nsession\.id|\x14pandaeval\.session\.id|\x13langfuse\.session\.id)"
    rb"\x12.\n[^\x00](?!resp_)",
    re.DOTALL,
)
"""Matches the encoded attributes that most often name a session."""
Exchange = tuple[str, str]
"""The user's text and the last answer (``""`` if missing)."""


def session_id(tree: Tree) -> str | None:
    """Return the best-ranked session id (``semconv.SESSION_RANKS``), or ``None``.

    Of equal ranks, the outermost span's id wins, then the earliest.
    """
    found = [
        (rank, tree.depth(span), position, candidate)
        for position, span in enumerate(tree.spans)
        for rank, candidate in span.session_ids
        if candidate
    ]
    if found:
        return min(found)[-1][:MAX_ID_CHARS]
    return None


def user_id(tree: Tree) -> str | None:
    return next((span.user_id[:MAX_ID_CHARS] for span in tree.spans if span.user_id), None)


def response_links(spans: Sequence[Span]) -> tuple[tuple[str, ...], str]:
    """Return the responses that a later turn can continue (the last :data:`MAX_GIVEN`), and the response that this
    trace continues (or ``""``).

    ``spans``: spans with a response or previous response, by start. Only ids of providers that keep the history count:
    the id begins with ``resp_``, or the call continues another.
    """
    previous = [span.previous_response_id for span in spans if span.previous_response_id]
    kept = [span.response_id for span in reversed(spans) if span.previous_response_id or span.response_id[:5] == _KEPT]
    if not previous and not kept:
        return (), ""
    continued, own = set(previous), {span.response_id for span in spans}
    left = dict.fromkeys(id_ for id_ in kept if id_ not in continued and _whole(id_))
    continues = next((id_ for id_ in previous if id_ not in own and _whole(id_)), "")
    return tuple(left)[:MAX_GIVEN][::-1], continues


def may_continue(spans: bytes) -> bool:
    """Return whether the encoded spans may continue another trace's response. No false negatives."""
    # Searching for two plain texts first takes a quarter of the time, and most spans have neither.
    return (b"previous_response" in spans or b"resp_" in spans) and _CONTINUES.search(spans) is not None


def _whole(id_: str) -> bool:
    return 0 < len(id_) < MAX_ID_CHARS


def is_history(id_: str) -> bool:
    """Return whether an id is a conversation's rather than a response's."""
    return id_.startswith(PREFIX)


def may_be_linked(spans: bytes) -> bool:
    """Return whether the encoded spans may link to another trace without a session. The scan is approximate."""
    return _NAMED.search(spans) is None or may_continue(spans)


def conversations(
    models: Sequence[Span], roots: Iterable[Span], turns: Sequence[Turn], whose: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    """Return the ids of the conversation at the trace's end, and of the continued conversation.

    ``()`` and ``""`` if not captured or too common. ``models``: model calls by start; if empty, ``roots`` are read. The
    id depends on ``whose`` (service, agent, user) and instrumentation.
    """
    speakers = [span for span in models if span.input] or [span for span in roots if span.input]
    if not speakers:
        return (), ""
    whose = (*whose, speakers[0].scope)
    before = next((exchanges for span in speakers[:_CALLS] if (exchanges := _exchanges(span.input or ())[:-1])), [])
    found: dict[str, None] = {}
    if all(turn.user is not None and turn.assistant for turn in turns):
        found[_id([*before, *[(_plain(turn.user or ""), _plain(turn.assistant or "")) for turn in turns]], whose)] = (
            None
        )
    # Up to the last model call's answer, with the words that a later history would contain.
    last = max(speakers, key=lambda span: (span.end_ns, span.start_ns))
    exchanges = _exchanges(last.input or ())
    answer = answer_of(last.output).text if last.kind is Kind.LLM and last.error is None and exchanges else None
    found[_id([*exchanges[:-1], (exchanges[-1][0], _plain(answer))] if answer else [], whose)] = None
    found.pop("", None)
    return tuple(found), _id(before, whose)


def _exchanges(messages: Sequence[Message]) -> list[Exchange]:
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
            text = _plain(message.text)
            if open_:
                found[-1] = f"{found[-1][0]} {text}", ""
            else:
                found.append((text, ""))
            open_ = True
            continue
        open_ = False
        text = message.text if message.role == "assistant" else ""
        if text:
            found[-1:] = [(found[-1][0] if found else "", _plain(text))]
    return found


def _plain(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


def _id(exchanges: Sequence[Exchange], whose: tuple[str, ...]) -> str:
    if not exchanges or not exchanges[-1][1]:
        return ""
    found = hashlib.blake2b("\0".join(whose).encode(errors="surrogatepass"), digest_size=16)
    asked, longest_answer, counted = 0, 0, False
    for user, answer in exchanges:
        asked += _add(user, found) + (_ASKED if _DIGIT.search(user) else 0)
        longest_answer = max(longest_answer, _add(answer, found))
        counted = counted or _DIGIT.search(answer) is not None
    if asked < _ASKED or longest_answer < (_ANSWERED if counted else _ANSWERED_WITHOUT_NUMBERS):
        return ""
    return PREFIX + found.hexdigest()


def _add(text: str, found: hashlib.blake2b) -> int:
    encoded = text.encode(errors="surrogatepass")
    found.update(len(encoded).to_bytes(8, "big"))
    found.update(encoded)
    return len(encoded)

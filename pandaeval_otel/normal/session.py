"""Finds the conversation that a trace belongs to: by the id that its spans name, else by the response of an earlier
trace that it continues, else by the history that its model calls hold.

Responses: where the provider keeps the history of a conversation (OpenAI's Responses API), only response ids tell which
turns belong together. History: where the application sends the history itself and no span names a session, only that
history tells. A conversation is what users said and what was last answered to each, without instructions, tool calls
and results: frameworks leave those out of later histories or change them. Conversations that many begin alike (a
greeting, a canned introduction) are none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from pandaeval_otel.model import Kind, Message, OtherPart, Span, Turn
from pandaeval_otel.normal.speech import answered, is_cut, is_user_turn
from pandaeval_otel.normal.tree import Tree

MAX_ID_CHARS = 256
MAX_GIVEN = 4
_KEPT = "resp_"
_CONTINUES = re.compile(rb'previous_response\.id|previous_response_id"\s*:\s*"|conversation\.id.{1,8}?resp_', re.DOTALL)
PREFIX = "history:"
"""Marks the id of a conversation among ids of responses."""
_ASKED, _ANSWERED, _ANSWERED_WITHOUT_NUMBERS = 20, 40, 200
"""Fewest bytes of UTF-8 (of the users' words, of an answer) that tell one conversation from others."""
_CALLS = 3
"""How many model calls are searched for a history: the first may be a router's or a rewriter's, which get none."""
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
"""The user's words and the last answer to them; ``""``: none."""


def session_id(tree: Tree) -> str | None:
    """Return the candidate of the best rank (see ``semconv.SESSION_RANKS``); of equal ranks the one on the outermost
    span, then on the earliest, since sub-agents may carry ids of their own.

    Returns ``None`` when no span names a conversation: such a trace is never reported under an invented id.
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
    """Return the user that the earliest span names, or ``None``."""
    return next((span.user_id[:MAX_ID_CHARS] for span in tree.spans if span.user_id), None)


def exchanged(spans: Sequence[Span]) -> tuple[tuple[str, ...], str]:
    """Return the responses that a next turn could continue, in order of their calls, at most the last
    :data:`MAX_GIVEN`; and the response of an earlier trace that this one continues (of the first call that names one),
    or ``""``.

    ``spans``: those with a response or a previous response, in order of start. Only providers that keep the history
    count: their ids begin with ``resp_``, or the call itself continues another. A response that a later call of the
    trace continues cannot be continued again.
    """
    previous = [span.previous_response_id for span in spans if span.previous_response_id]
    kept = [span.response_id for span in reversed(spans) if span.previous_response_id or span.response_id[:5] == _KEPT]
    if not previous and not kept:
        return (), ""
    answered, own = set(previous), {span.response_id for span in spans}
    left = dict.fromkeys(id_ for id_ in kept if id_ not in answered and _whole(id_))
    continues = next((id_ for id_ in previous if id_ not in own and _whole(id_)), "")
    return tuple(left)[:MAX_GIVEN][::-1], continues


def may_continue(spans: bytes) -> bool:
    """Return whether a trace with these encoded spans may continue a response of another trace: false positives occur,
    false negatives do not."""
    # Searching for two plain texts first takes a quarter of the time, and most spans have neither.
    return (b"previous_response" in spans or b"resp_" in spans) and _CONTINUES.search(spans) is not None


def _whole(id_: str) -> bool:
    """Return whether an id is complete: longer ids were cut, and two cut ones may look the same."""
    return 0 < len(id_) < MAX_ID_CHARS


def is_history(id_: str) -> bool:
    """Return whether an id is a conversation's rather than a response's."""
    return id_.startswith(PREFIX)


def may_be_linked(spans: bytes) -> bool:
    """Return whether a trace with these encoded spans may continue, or be continued by, a trace that names no session;
    a scan of the bytes cannot tell for certain."""
    return _NAMED.search(spans) is None or may_continue(spans)


def conversations(
    models: Sequence[Span], roots: Iterable[Span], turns: Sequence[Turn], whose: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    """Return the ids of the conversation at the end of a trace (in one or two readings), and the id of the
    conversation that it continues; ``()`` and ``""`` for conversations that were not captured or could be anybody's.

    ``models``: its model calls in order of start; ``roots`` are read where there are none. Conversations with the same
    words differ by ``whose`` (service, agent and user) and by the instrumentation that recorded them.
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
    # Up to the last model call's answer, in the words that a next call's history has.
    last = max(speakers, key=lambda span: (span.end_ns, span.start_ns))
    told = _exchanges(last.input or ())
    said = answered(last.output).text if last.kind is Kind.LLM and last.error is None and told else None
    found[_id([*told[:-1], (told[-1][0], _plain(said))] if said else [], whose)] = None
    found.pop("", None)
    return tuple(found), _id(before, whose)


def _exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Return the exchanges in order; none of a list that was captured only in part."""
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

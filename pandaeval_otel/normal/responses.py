"""Finds out which responses a trace gave, and which earlier one it continues: where the provider keeps the history of a
conversation (OpenAI's Responses API), nothing else tells which turns belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pandaeval_otel.model import Span
from pandaeval_otel.normal.session import MAX_ID_CHARS

MAX_GIVEN = 4
_KEPT = "resp_"
_CONTINUES = re.compile(rb'previous_response\.id|previous_response_id"\s*:\s*"|conversation\.id.{1,8}?resp_', re.DOTALL)


def exchanged(spans: Sequence[Span]) -> tuple[tuple[str, ...], str]:
    """The responses that a next turn could go on from, in order of their calls, at most the last :data:`MAX_GIVEN`; and
    the response of an earlier trace that this one goes on from (of the first call that has one), or ``""``.

    ``spans``: those with a response or a previous response, in order of start. Only providers that keep the history
    count: their ids begin with ``resp_``, or the call itself goes on from another. A response that was answered within
    the trace is none that is left to go on from.
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
    """Whether a trace with these spans, as they came, may go on from a response of another trace; all that do are among
    those that may."""
    # To search for two texts first takes a quarter of the time, and most spans have neither.
    return (b"previous_response" in spans or b"resp_" in spans) and _CONTINUES.search(spans) is not None


def _whole(id_: str) -> bool:
    """Longer ids were cut, so that two of them may look the same."""
    return 0 < len(id_) < MAX_ID_CHARS

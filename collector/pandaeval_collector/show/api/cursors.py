"""Where a page of a list ended, as a text that programs hand back."""

from __future__ import annotations

import base64
import binascii
import math

import orjson

from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.store.found import Position


def cursor_of(position: Position | None) -> str | None:
    """A text without meaning to others; ``None`` after the last page."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def position_of(cursor: str | None) -> Position | None:
    """The position that a cursor was made of. Raises :class:`ProblemError` (400) for a text that is no cursor."""
    if cursor is None:
        return None
    try:
        value, number = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        position = float(value), number
        if type(number) is int and abs(number) < 1 << 63 and math.isfinite(position[0]):
            return position
    except (ValueError, TypeError, binascii.Error, OverflowError):
        pass
    raise ProblemError(400, "this is no cursor of ours: take the `next` of the page before")

"""The filters that lists share, as query parameters and as a part of what runs are asked for."""

from __future__ import annotations

import base64
import binascii
import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field, create_model

from pandaeval_collector.base.filters import FILTERS, MOST_PAIRS, MOST_TEXT, OUTCOMES, PAIR, STATUSES, Filter, meaning
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.store.finding import Position
from pandaeval_collector.store.listed import Wanted


# Cursors: where a page of a list ended, as a text that programs give back.
def cursor_of(position: Position | None) -> str | None:
    """Returns a position as an opaque text; ``None`` after the last page."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def position_of(cursor: str | None) -> Position | None:
    """Returns the position in a cursor. Raises :class:`ProblemError` (400) for a text that is no cursor."""
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


def number_of(cursor: str | None) -> int | None:
    """Returns the number in a cursor of a list that is ordered by it. Raises :class:`ProblemError`."""
    position = position_of(cursor)
    return None if position is None else position[1]


_ANNOTATED: Any = Annotated
"""For types that are put together at run time."""
_Text = Annotated[str, Field(max_length=MOST_TEXT)]
_Pairs = Annotated[list[Annotated[str, Field(pattern=PAIR, max_length=MOST_TEXT)]], Field(max_length=MOST_PAIRS)]
_TYPES: Mapping[str, Any] = {
    "time": datetime | None,
    "text": _Text | None,
    "flag": bool | None,
    "status": Literal[*STATUSES] | None,
    "outcome": Literal[*OUTCOMES] | None,
    "pairs": _Pairs,
}


def wanted_of(**given: Any) -> Wanted:
    """Returns the store's form of the filters, given by their names."""
    since, until = (_milliseconds(given.pop(name, None)) for name in ("since", "until"))
    return Wanted(since, until, **given | {"attribute": tuple(given.get("attribute") or ())})


def _default(each: Filter) -> list[str] | None:
    return [] if each.kind == "pairs" else None


wanted_of.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(each),
            annotation=_ANNOTATED[_TYPES[each.kind], Query(description=meaning(each.name))],
        )
        for each in FILTERS
    ]
)
Filters = Annotated[Wanted, Depends(wanted_of)]
"""A parameter of an operation that lists."""


class FilterFields(BaseModel):
    """Which traces, as the lists take it. What is left out excludes nothing."""

    model_config = ConfigDict(extra="forbid")

    def wanted(self) -> Wanted:
        """Returns the filters in the store's form."""
        return wanted_of(**self.model_dump())


_FIELDS: Any = {
    each.name: (_ANNOTATED[_TYPES[each.kind], Field(description=meaning(each.name))], _default(each))
    for each in FILTERS
}
RunFilters: type[FilterFields] = create_model(
    "RunFilters", __base__=FilterFields, __doc__=FilterFields.__doc__, **_FIELDS
)
"""The filters of a run."""
Window = Annotated[
    Literal["1h", "6h", "24h", "7d", "all"], Query(description="How far back traces started that are looked at.")
]
CursorText = Annotated[str | None, Query(alias="cursor", max_length=200, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=500, description="Most items of a page.")]


_REACH_MS = {"1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000, "7d": 604_800_000}


def within(wanted: Wanted, window: str, now_ms: int) -> Wanted:
    """Returns ``wanted`` limited to traces of the ``window`` that ends now."""
    reach = _REACH_MS.get(window)
    return wanted if reach is None else replace(wanted, since_ms=max(now_ms - reach, wanted.since_ms or 0))


def _milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)

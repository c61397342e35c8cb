"""Opaque cursors of pages."""

from __future__ import annotations

import base64
from typing import Annotated

import orjson
from fastapi import Query
from pydantic import Field, FiniteFloat, Strict, TypeAdapter

from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.store.listed_pages import Position

CursorText = Annotated[
    str | None, Query(alias="cursor", max_length=200, description="Value of `next` of the previous page.")
]
_Number = Annotated[int, Strict(), Field(gt=-(1 << 63), lt=1 << 63)]
_POSITION: TypeAdapter[Position] = TypeAdapter(tuple[FiniteFloat, _Number])
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of items on a page.")]


def cursor_of(position: Position | None) -> str | None:
    if position is None:
        return None
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def position_of(cursor: str | None) -> Position | None:
    """Decode a cursor. Raises :class:`ProblemError` (400)."""
    if cursor is None:
        return None
    try:
        return _POSITION.validate_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError as error:
        raise ProblemError(400, "invalid cursor: use `next` of the previous page") from error


def number_of(cursor: str | None) -> int | None:
    """Decode a cursor with a number. Raises :class:`ProblemError`."""
    position = position_of(cursor)
    return None if position is None else position[1]

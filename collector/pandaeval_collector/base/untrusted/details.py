"""Details that a metric gives beside its score: others' metrics may give any number of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST, _CHARS = 4000, 64
"""Most values that are kept, and characters of a text that count as one value: a quarter of a megabyte in all."""
_MOST_CHARS, _DEEPEST = 2000, 100
_SMALL = frozenset({int, float, bool, type(None)})


def bounded(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the details; of too many the first ones, with a note that there were more."""
    if _room_after(details, _MOST) >= 0:
        return details
    return {**_first(details, _Room(_MOST)), "left_out": "there were more details than are kept"}


def _room_after(value: Any, room: int, deep: int = _DEEPEST) -> int:
    """Returns what is left of ``room`` after a value; less than 0 if it does not fit, and is read no further."""
    if type(value) in _SMALL:
        return room - 1
    match value:
        case str() | bytes():
            return room - 1 - len(value) // _CHARS
        case dict() | list() | tuple() | Mapping() if not deep or len(value) > room:
            return -1
        case dict() | Mapping():
            for key, held in value.items():
                room -= len(str(key)) // _CHARS
                if (room := room - 1 if type(held) in _SMALL else _room_after(held, room, deep - 1)) < 0:
                    break
        case list() | tuple():
            for held in value:
                if (room := room - 1 if type(held) in _SMALL else _room_after(held, room, deep - 1)) < 0:
                    break
    return room - 1


@dataclass(slots=True)
class _Room:
    left: int


def _first(value: Any, room: _Room, deep: int = _DEEPEST) -> Any:
    room.left -= 1
    match value:
        case str() | bytes():
            room.left -= min(len(value), _MOST_CHARS) // _CHARS
            return value if len(value) <= _MOST_CHARS else str(value[:_MOST_CHARS]) + "…"
        case Mapping() | list() | tuple() if not deep:
            return "…"
        case Mapping():
            kept = {}
            for key, held in value.items():
                if room.left <= 0:
                    break
                kept[str(key)[:_MOST_CHARS]] = _first(held, room, deep - 1)
            return kept
        case list() | tuple():
            found = []
            for held in value:
                if room.left <= 0:
                    break
                found.append(_first(held, room, deep - 1))
            return found
    return value

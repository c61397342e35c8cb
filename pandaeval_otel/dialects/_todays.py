"""Messages in today's form, a list of roles and parts: what most conversations are written in, read in one pass."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base._json import loads
from pandaeval_otel.dialects._message import ROLES, finish_reason_of, role_of, true_role
from pandaeval_otel.dialects._parts import part_of, text_part
from pandaeval_otel.dialects._values import LONGEST_PLACEHOLDER, MAX_JSON, too_deep
from pandaeval_otel.model import Message, Part, Text

_CONTAINERS = frozenset({dict, list})
_TEXT_MEMBERS = 2
"""Of a part that is text and nothing else: its type and the text."""
_MESSAGE_MEMBERS = 2
"""Of a message that is nothing but a role and parts."""


def json_array(text: str) -> list[Any] | None:
    """The array that ``text`` spells, however deep it is; ``None`` where it spells none."""
    if text[:1] != "[" or len(text) > MAX_JSON:
        return None
    try:
        found = loads(text)
    except (ValueError, RecursionError):
        return None
    return found if type(found) is list else None


def todays_messages(items: list[Any], role: str) -> tuple[Message, ...] | None:
    """The messages of a list in which each is in today's form and stands for itself, ``role`` where one has none.
    ``None`` for all others, and for a list that is nested too deep.

    How deep it is costs as much to find out as all the rest, and nearly every list is seen to be flat on the way.
    """
    found: list[Message] = []
    known_flat = False
    for item in items:
        if type(item) is not dict or type(given := item.get("parts")) is not list or "role" not in item:
            return None
        word = item["role"]
        bare = len(item) == _MESSAGE_MEMBERS
        if not known_flat and not (bare and type(word) is str) and not _has_no_other(item, given):
            if too_deep(items):
                return None
            known_flat = True
        parts: list[Part] = []
        for part in given:
            if (
                type(part) is dict
                and len(part) == _TEXT_MEMBERS
                and part.get("type") == "text"
                and type(text := part.get("content")) is str
                and len(text) > LONGEST_PLACEHOLDER
            ):
                parts.append(Text(text))  # most parts are just this
                continue
            if not known_flat and not _is_flat(part):
                if too_deep(items):
                    return None
                known_flat = True
            parts.append(part_of(part) if type(part) is dict else text_part(part))
        said_by = (ROLES.get(word) if type(word) is str else None) or role_of(item, role)
        reason = "" if bare else finish_reason_of(item)
        found.append(Message(true_role(said_by, parts) if said_by == "user" else said_by, tuple(parts), reason))
    return tuple(found)


def _has_no_other(item: dict[str, Any], given: list[Any]) -> bool:
    """Whether nothing in a message but its parts holds anything."""
    return all(value is given or type(value) not in _CONTAINERS for value in item.values())


def _is_flat(part: Any) -> bool:
    """Whether a part holds no more than lists and maps of plain values."""
    if type(part) is not dict:
        return type(part) is not list
    for value in part.values():
        if type(value) is not str and type(value) in _CONTAINERS:
            for inner in value.values() if type(value) is dict else value:
                if type(inner) is not str and type(inner) in _CONTAINERS:
                    return False
    return True

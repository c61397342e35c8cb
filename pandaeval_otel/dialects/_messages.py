"""Reads messages from any value of an attribute, event or log body.

Understood: OTel messages (``role`` + ``parts``), OpenAI chat messages and Responses items, Anthropic and Bedrock
messages, Gemini contents, LangChain messages (constructors, dictionaries, pairs), and the request and response bodies
around them; each as JSON text (also encoded twice, or cut short) or already structured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pandaeval_otel.base._json import as_text, loads
from pandaeval_otel.dialects._message import (
    BESIDE_PARTS,
    CLASS_ROLES,
    ITEM_ROLES,
    ROLES,
    finish_reason_of,
    message_of,
    otel_message,
    role_of,
    true_role,
    with_members,
)
from pandaeval_otel.dialects._parts import part_of, text_part
from pandaeval_otel.dialects._recent import GrowingList, Recent
from pandaeval_otel.dialects._salvage import salvage, starts_like_json, without_cut_values
from pandaeval_otel.dialects._values import LONGEST_PLACEHOLDER, MAX_JSON, hidden, is_prose, parsed, too_deep
from pandaeval_otel.model import NOT_CAPTURED, Message, OtherPart, Part, Text

__all__ = ["Messages", "message_of", "messages_of", "read_messages", "role_of", "system_text", "tells", "was_cut"]

Messages = tuple[Message, ...]

_LISTS = ("messages", "contents", "choices", "candidates", "generations", "input_messages", "output_messages")
_ANY_LIST = frozenset(_LISTS)
_MAX_NESTING = 6
_CONTAINERS = frozenset({dict, list})
_TEXT_MEMBERS = 2
"""Members of a part that is text and nothing else: its type and the text."""
_MESSAGE_MEMBERS = 2
"""Members of a message that is nothing but a role and parts."""


def messages_of(value: Any, role: str) -> Messages | None:
    """Returns the messages in ``value``; a message without a role gets ``role`` (``user`` for inputs).

    Returns ``()`` for a captured, empty list; ``None`` for an absent value, a placeholder, or messages all of whose
    content was hidden. A hidden message among others that are not holds :data:`NOT_CAPTURED`.
    """
    return read_messages(value, role)[0]


def read_messages(value: Any, role: str) -> tuple[Messages | None, bool]:
    """Returns what :func:`messages_of` does, and whether the text was cut short (its last message is then
    incomplete)."""
    if value is None:
        return None, False
    if type(value) is str:
        if role == "user":
            return _GIVEN(value)
        if role == "assistant":
            return _MADE(value)
    return _read(value, role)


def was_cut(value: Any) -> bool:
    """Returns whether ``value`` was cut short, as :func:`read_messages` does, without reading its messages."""
    return _structure(value)[1]


def _read_given(text: str) -> tuple[Messages | None, bool]:
    """Reads inputs as :func:`_read` does; of a conversation that has grown since its last reading, only the new
    part."""
    grown = _CONVERSATIONS.split(text)
    if grown is not None:
        before, rest = grown
        new = json_array(rest)
        added = None if new is None else todays_messages(new, "user")
        if added:
            _CONVERSATIONS.keep(text, (*before, *added))
            return (*before, *added), False
    items = json_array(text)
    found = None if items is None else todays_messages(items, "user")
    if not found:
        return _read_otherwise(text, items, "user")
    if not tells(found):
        return None, False
    _CONVERSATIONS.keep(text, found)
    return found, False


def _read_made(text: str) -> tuple[Messages | None, bool]:
    items = json_array(text)
    found = None if items is None else todays_messages(items, "assistant")
    if not found:
        return _read_otherwise(text, items, "assistant")
    return (found if tells(found) else None), False


def _read_otherwise(text: str, items: list[Any] | None, role: str) -> tuple[Messages | None, bool]:
    """Reads messages from text that is no list in today's form. ``items``: the array that it spells, if any."""
    return _read(text if items is None or too_deep(items) else items, role)


def _read(value: Any, role: str) -> tuple[Messages | None, bool]:
    value, cut = _structure(value)
    if value is None:
        return None, cut
    found = tuple(_messages(value, role, 0))
    if cut:
        found = without_cut_values(found)
    return (found if not found or tells(found) else None), cut


def tells(messages: Iterable[Message]) -> bool:
    """Returns whether any part of ``messages`` was captured."""
    for message in messages:
        for part in message.parts:
            if part is not NOT_CAPTURED:
                return True
    return False


def _structure(value: Any) -> tuple[Any, bool]:
    """Returns the structure that ``value`` holds or spells (``None`` for placeholders), and whether it was cut
    short."""
    if isinstance(value, (str, bytes)):
        value = parsed(value)
        if type(value) is str and starts_like_json(value):
            saved = salvage(value)
            # Text that is neither JSON nor the beginning of it was written by somebody, unless it begins like messages.
            return (value, False) if saved is None and not value.startswith('[{"') else (saved, True)
    if type(value) is list:
        return value, False
    return (None, False) if hidden(value) or value in ("", {}) else (value, False)


def system_text(value: Any) -> str | None:
    """Returns the text of system instructions (plain text, a JSON array of parts, or messages); ``None`` if not
    captured."""
    if type(value) is not str:
        return None if value is None else _system_text(value)
    return value if is_prose(value) else _SYSTEM(value)


def _system_text(value: Any) -> str | None:
    value = parsed(value)
    if hidden(value) or value in ("", {}):
        return None
    if type(value) is str and not starts_like_json(value):
        return value
    if type(value) is dict and "role" not in value and "parts" not in value:
        value = [value]
    found = [text for message in messages_of(value, "system") or () if (text := message.text)]
    return "\n".join(found) if found else None


def _messages(value: Any, role: str, nesting: int) -> list[Message]:
    if isinstance(value, (list, tuple)):
        if len(value) == 2 and type(value[0]) is str and value[0] in ROLES and type(value[1]) is str:
            return [Message(ROLES[value[0]], (text_part(value[1]),))]
        return _from_list(value, role, nesting)
    if type(value) is dict:
        return _from_dict(value, role, nesting)
    return [Message(role, (text_part(value),))]


def _from_list(items: list[Any] | tuple[Any, ...], role: str, nesting: int) -> list[Message]:
    found: list[Message] = []
    loose: list[Part] = []
    for item in items:
        if type(item) is dict and type(item.get("parts")) is list and "role" in item:
            found.append(otel_message(item, role))
        elif type(item) is dict and _is_block(item):
            loose.append(part_of(item))
        elif nesting < _MAX_NESTING:
            found += _messages(item, role, nesting + 1)
    return [Message(true_role(role, loose), tuple(loose)), *found] if loose else found


def _from_dict(item: dict[str, Any], role: str, nesting: int) -> list[Message]:
    if nesting < _MAX_NESTING and "role" not in item:
        for key in () if _ANY_LIST.isdisjoint(item) else _LISTS:
            if isinstance(item.get(key), (list, tuple)):
                return _messages(item[key], role, nesting + 1)
        inner = parsed(item["message"]) if "message" in item else None
        if type(inner) is dict:
            return _with_finish(_messages(inner, role, nesting + 1), item)
        content = item.get("content")
        if type(content) is dict and ("parts" in content or "role" in content):
            return _with_finish(_messages(content, role, nesting + 1), item)
    if not _is_block(item):
        return [message_of(item, role)]
    part = part_of(item)
    if part == OtherPart("", item):  # neither message nor block: the answer itself is a JSON object
        part = Text(as_text(item))
    return [Message(role, (part,))]


def _is_block(item: dict[str, Any]) -> bool:
    """Returns whether ``item`` is a content block rather than a message: it has no role and no other member of one."""
    if "role" in item or "parts" in item or "kwargs" in item or "tool_calls" in item or "data" in item:
        return False
    kind = item.get("type")
    if type(kind) is str:
        return kind not in ITEM_ROLES and kind.lower().removesuffix("chunk").removesuffix("message") not in CLASS_ROLES
    return "content" not in item and "message" not in item


def _with_finish(found: list[Message], item: dict[str, Any]) -> list[Message]:
    reason = finish_reason_of(item)
    if len(found) == 1 and reason and not found[0].finish_reason:
        return [Message(found[0].role, found[0].parts, reason)]
    return found


_CONVERSATIONS: GrowingList[Messages] = GrowingList()
_GIVEN, _MADE = Recent(_read_given), Recent(_read_made)
_SYSTEM = Recent(_system_text)


def json_array(text: str) -> list[Any] | None:
    """Returns the array that ``text`` spells, of any depth; ``None`` where it spells none."""
    if text[:1] != "[" or len(text) > MAX_JSON:
        return None
    try:
        found = loads(text)
    except (ValueError, RecursionError):
        return None
    return found if type(found) is list else None


def todays_messages(items: list[Any], role: str) -> tuple[Message, ...] | None:
    """Returns the messages of a list in today's form (roles and parts), read in one pass; ``role`` where one has none.
    Returns ``None`` for all other lists, and for one that is nested too deep.

    Measuring the depth costs as much as all the rest, and nearly every list turns out to be flat on the way.
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
        if not bare and not BESIDE_PARTS.isdisjoint(item):
            parts = with_members(parts, item, said_by)
        reason = "" if bare else finish_reason_of(item)
        found.append(Message(true_role(said_by, parts) if said_by == "user" else said_by, tuple(parts), reason))
    return tuple(found)


def _has_no_other(item: dict[str, Any], given: list[Any]) -> bool:
    """Returns whether no member of a message but its parts is a container."""
    return all(value is given or type(value) not in _CONTAINERS for value in item.values())


def _is_flat(part: Any) -> bool:
    """Returns whether a part holds at most lists and maps of plain values."""
    if type(part) is not dict:
        return type(part) is not list
    for value in part.values():
        if type(value) is not str and type(value) in _CONTAINERS:
            for inner in value.values() if type(value) is dict else value:
                if type(inner) is not str and type(inner) in _CONTAINERS:
                    return False
    return True

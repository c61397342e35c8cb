"""The agent's evidence: instructions, definitions, user messages, call arguments and results, and documents,
of the trace and earlier session traces.

Each text is parsed once by content, because histories repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import orjson

from pandaeval_collector.analysis.rules.grounding.before import Origin, instruction_content, json_text, received_content
from pandaeval_collector.analysis.rules.grounding.values import NUMBERS, Value, fold, scan, squeezed
from pandaeval_otel.model import Trace

MOST_CHARS = 400_000
"""Characters of all evidence of a trace. The rest is not read, which is noted."""
_DEPTH, _LONGEST_NAME, _LONGEST_LABEL, _LEAST_VERBATIM = 40, 60, 40, 5
_MOST_KEPT = 150_000
"""Approximate number of values above which the cache of parsed contents is cleared."""
_MOST_PLACES = 1_000
"""Places of a text in longer values, after which the search for the text ends."""
_DIGIT = re.compile(r"\d")
_BEGUN, _GOES_ON = re.compile(r"(?:[\w%°]|\w[.,:/-])\Z"), re.compile(r"[\w%°]|[.,:/-]\w")
_DECIMAL = re.compile(r"-?\d{1,15}\.\d{1,2}")
_RUN = re.compile(r"[0-9]+|[^0-9]+")
_ISO_DURATION = re.compile(r"\bPT(?=\d)(?:(\d+)H)?(?:(\d+)M)?\b")
_WORTH = re.compile(r"price|cost|fee|amount|total|fare|balance|pay|tax|refund|charge|usd|eur", re.IGNORECASE)


class Field(NamedTuple):
    """A value in text or JSON. ``label``: its key, or the words before it. ``row``: texts of its object."""

    value: Value
    label: str
    row: tuple[str, ...]


class Content:
    """The fields of a text or JSON. ``keys``: for lookup (:func:`_keys`)."""

    def __init__(self, raw: str) -> None:
        self.fields: list[Field] = []
        self._read(raw, "", (), _DEPTH)
        self.keys = {key for each in self.fields for key in _keys(each.value)}
        self.forms = {form(each.value) for each in self.fields if each.value.kind == "identifier"}

    def _read(self, value: Any, label: str, row: tuple[str, ...], depth: int) -> None:
        if depth == 0 or value is None or isinstance(value, bool):
            return
        if isinstance(value, dict):
            self._read_object(value, label, depth)
        elif isinstance(value, list):
            for item in value:
                self._read(item, label, row, depth - 1)
        elif not isinstance(value, str) or _DECIMAL.fullmatch(value) is not None:
            self.fields.append(Field(_of_json(str(value), " ".join((*row[:1], label))), label, row))
        elif (inside := _parsed(value)) is not None:
            self._read(inside, label, row, depth - 1)
        else:
            self._text(value, label, row)

    def _read_object(self, value: dict[str, Any], label: str, depth: int) -> None:
        names = [item for item in value.values() if isinstance(item, str) and 3 <= len(item) <= _LONGEST_NAME]
        row = (label, *names)
        for name, item in value.items():
            self._text(name, "", ())
            self._read(item, name, row, depth - 1)

    def _text(self, text: str, label: str, row: tuple[str, ...]) -> None:
        if _DIGIT.search(text) is None:
            return
        text, end = _ISO_DURATION.sub(_hours_and_minutes, fold(text).replace("\\n", "\n")), 0
        for value in scan(text):
            before = text[max(end, value.start - _LONGEST_LABEL) : value.start].rpartition("\n")[2]
            if value.kind != "time" or before not in ("+", "-"):  # the offset of a time zone
                self.fields.append(Field(value, before if before.strip() else label, row))
            end = value.end


def _hours_and_minutes(duration: re.Match[str]) -> str:
    """Return PT1H35M as people write it."""
    return f"{duration[1] or 0} hours {duration[2] or 0} minutes"


def _parsed(text: str) -> Any:
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"{', '"[')) or len(stripped) > MOST_CHARS:
        return None
    try:
        return orjson.loads(stripped)
    except ValueError:
        return None


def _of_json(text: str, key: str) -> Value:
    """Read a number of JSON. Its key may show that it is an amount."""
    number, digits = abs(float(text)), text.lstrip("-")
    if _WORTH.search(key) is not None:
        return Value("amount", digits, 0, (number,))
    if len(digits) >= 6 and digits.isdigit():
        return Value("identifier", digits, 0, (digits, number))
    return Value("number", digits, 0, (number,))


def _keys(value: Value) -> Iterator[float | str]:
    """Yield the lookup keys of a value: identifiers, also the digits at their end; numbers, also rounded and in cents;
    days, also without a year; minutes of times."""
    for key in value.keys:
        if isinstance(key, str):
            yield key
            tail = key[len(key.rstrip("0123456789")) :]
            if value.kind == "identifier" and len(tail) >= 3:
                yield from (tail, tail[-4:])
        elif value.kind == "date":
            yield from (f"day {key:.0f}", f"day {key % 10000:.0f}")
        elif value.kind == "time":
            yield f"minutes {key:.0f}"
        else:
            yield from {key, key // 1, *(round(key, places) for places in range(3)), round(key / 100, 2)}


def _sought(value: Value) -> set[float | str]:
    """Return alternative keys of a value; one must be known. For a time, a key such as 1100 is included."""
    if value.kind == "date":
        return {*_keys(value)}
    if value.kind != "time":
        return {value.text, *value.keys}
    clock = {key // 60 * 100 + key % 60 for key in value.keys if isinstance(key, float) and key >= 60}
    return {*_keys(value), *clock}


def form(value: Value) -> str:
    """Return the form of an identifier: order of letters and digits (``mixed`` above two runs), and length."""
    key = str(value.keys[0])
    runs = _RUN.findall(key)
    return f"{'mixed' if len(runs) > 2 else ''.join('9' if run[0].isdigit() else 'a' for run in runs)} {len(key)}"


class _Kept(dict[str, Content]):
    count = 0

    def __missing__(self, raw: str) -> Content:
        content = Content(raw)
        if self.count > _MOST_KEPT:
            self.clear()
            self.count = 0
        self[raw] = content
        self.count += 8 + len(content.keys) + len(raw) // 100
        return content


_kept = _Kept()


def parsed_content(value: Any) -> Content:
    return _kept[json_text(value)]


class _Union:
    """The members of several sets. Reads a set when the earlier sets lack the member."""

    def __init__(self, sets: Iterator[set[Any]]) -> None:
        self._seen: set[Any] = set()
        self._unread = sets

    def has(self, members: set[Any]) -> bool:
        """Return whether any of ``members`` is in a set."""
        if not members.isdisjoint(self._seen):
            return True
        for each in self._unread:
            self._seen |= each
            if not members.isdisjoint(each):
                return True
        return False


@dataclass
class KnownContent:
    """The agent's evidence, as texts. ``own``: the agent's earlier answers. ``cut``: a part was not read."""

    sources: dict[tuple[Origin, str], None] = field(default_factory=dict)
    own: dict[str, None] = field(default_factory=dict)
    cut: bool = False
    _left: int = MOST_CHARS

    def add(self, who: Origin, value: Any) -> None:
        """Add a text or JSON value once."""
        if value is None or value == "" or value == []:
            return
        raw = json_text(value)
        if who == "told":
            self.own[raw] = None
        elif (who, raw) not in self.sources:
            self._left -= len(raw)
            self.cut = self.cut or self._left < 0
            if not self.cut:
                self.sources[who, raw] = None

    @cached_property
    def _text(self) -> str:
        return "\n".join(raw for _, raw in self.sources)

    def has(self, value: Value, is_argument: bool = False) -> bool:
        """Return whether the agent had a value in any spelling, or rounded; for an argument, not only in calls."""
        if not is_argument and len(value.text) >= _LEAST_VERBATIM and _stands(value.text, self._text):
            return True  # most: no text is read
        if self.knows(_sought(value), is_argument):
            return True
        key = str(value.keys[0])
        if value.kind in (*NUMBERS, "date", "time") or len(key) < 5 or (key.isdigit() and len(key) < 9):
            return False
        return key in self._squeezed[is_argument]

    def knows(self, keys: set[float | str], is_argument: bool = False) -> bool:
        return self._seen[is_argument].has(keys)

    def has_form(self, value: Value) -> bool:
        return self._forms.has({form(value)})

    @cached_property
    def _seen(self) -> tuple[_Union, _Union]:
        return _Union(_kept[raw].keys for raw in self._raw(False)), _Union(_kept[raw].keys for raw in self._raw(True))

    @cached_property
    def _forms(self) -> _Union:
        return _Union(_kept[raw].forms for raw in self._raw(True))

    @cached_property
    def _squeezed(self) -> tuple[str, str]:
        calls, others = (self._joined(is_call) for is_call in (True, False))
        return f"{others}\n{calls}", others

    def results(self) -> Iterator[Field]:
        """Yield the fields of all results, the newest first."""
        for who, raw in reversed(self.sources):
            if who == "result":
                yield from _kept[raw].fields

    def _joined(self, is_call: bool) -> str:
        return "\n".join(squeezed(fold(raw)) for who, raw in self.sources if (who == "call") == is_call)

    def _raw(self, is_argument: bool) -> Iterator[str]:
        return (raw for who, raw in reversed(self.sources) if who != "call" or not is_argument)


def _stands(text: str, whole: str) -> bool:
    """Return whether a text contains another text exactly, and not inside a longer value."""
    place = -1
    for _ in range(
        _MOST_PLACES
    ):  # a search for plain text takes a fraction of the time of a pattern with these borders
        place = whole.find(text, place + 1)
        if place < 0:
            return False
        if not _GOES_ON.match(whole, place + len(text)) and not _BEGUN.search(whole[max(0, place - 2) : place]):
            return True
    return False


def evidence(trace: Trace, earlier: Iterable[tuple[Origin, Any]] = ()) -> KnownContent:
    """Read the evidence of the trace's spans, and ``earlier`` session content."""
    found = KnownContent()
    for who, value in chain(earlier, instruction_content(trace), received_content(trace)):
        found.add(who, value)
    return found

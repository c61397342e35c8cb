"""The agent's evidence with times: instructions, definitions, user messages, calls and documents of the session."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from pandaeval_collector.analysis.rules.grounding.before import Whose, held, shown, spelled
from pandaeval_collector.analysis.rules.grounding.values import NUMBERS, Value, fold, scan, squeezed
from pandaeval_otel.model import Trace

MOST_CHARS = 400_000
"""Characters of all evidence of a trace. The rest is not read, which is noted."""
_DEPTH, _LONGEST_NAME, _LONGEST_LABEL, _LEAST_VERBATIM = 40, 60, 40, 5
_MOST_KEPT = 150_000
"""Values of all contents that are kept read."""
_DIGIT = re.compile(r"\d")
_BEGUN, _GOES_ON = re.compile(r"(?:[\w%°]|\w[.,:/-])\Z"), re.compile(r"[\w%°]|[.,:/-]\w")
_DECIMAL = re.compile(r"-?\d{1,15}\.\d{1,2}")
_RUN = re.compile(r"[0-9]+|[^0-9]+")
_WORTH = re.compile(r"price|cost|fee|amount|total|fare|balance|pay|tax|refund|charge|usd|eur", re.IGNORECASE)
_UNIT_OF_KEY = re.compile(r"(?:^|[_ ])(kg|lb|km|mile|mb|gb|kb|tb|mph|kmh|day|hour|minute|min|second|percent)s?$", re.I)


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
        self.forms = {form(each.value) for each in self.fields}

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
        text, end = fold(text).replace("\\n", "\n"), 0
        for value in scan(text):
            before = text[max(end, value.start - _LONGEST_LABEL) : value.start].rpartition("\n")[2]
            if value.kind != "time" or before not in ("+", "-"):  # the offset of a time zone
                self.fields.append(Field(value, before if before.strip() else label, row))
            end = value.end


def _parsed(text: str) -> Any:
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"{', '"[')) or len(stripped) > MOST_CHARS:
        return None
    try:
        return orjson.loads(stripped)
    except ValueError:
        return None


def _of_json(text: str, key: str) -> Value:
    number, digits, unit = abs(float(text)), text.lstrip("-"), _UNIT_OF_KEY.search(key)
    if _WORTH.search(key) is not None:
        return Value("amount", digits, 0, (number,))
    if len(digits) >= 6 and digits.isdigit():
        return Value("identifier", digits, 0, (digits, number))
    return Value("number", digits, 0, (number,), unit[1] if unit is not None else "")


def _keys(value: Value) -> Iterator[float | str]:
    """Yield lookup keys of a value: final digits of identifiers, rounded numbers, cents, days without year, minutes."""
    for key in value.keys:
        if isinstance(key, str):
            yield key
            tail = key[len(key.rstrip("0123456789")) :]
            if value.kind == "identifier" and len(tail) >= 3:
                yield from (tail, tail[-4:])
        elif value.kind == "date":
            yield from (f"day {key:.0f}", f"day {key % 10000:.0f}")
        elif value.kind in ("time", "duration"):
            yield f"minutes {key:.0f}"
        else:
            yield from {key, key // 1, *(round(key, places) for places in range(3)), round(key / 100, 2)}


def _sought(value: Value) -> Iterator[float | str]:
    if value.kind == "number":
        yield value.text
    for key in value.keys:
        if isinstance(key, str) or value.kind in (*NUMBERS, "identifier"):
            yield key
        elif value.kind == "date":
            yield from (f"day {key:.0f}", f"day {key % 10000:.0f}")
        else:
            yield f"minutes {key:.0f}"
            if value.kind == "duration":
                yield from (key, key / 60, key / 1440)
            elif key >= 60:
                yield key // 60 * 100 + key % 60


def form(value: Value) -> str:
    """Return a value's kind; for identifiers also their length and whether letters precede digits."""
    if value.kind != "identifier":
        return value.kind
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


def read(value: Any) -> Content:
    return _kept[spelled(value)]


@dataclass
class Source:
    """A text or JSON text that the agent had from ``at`` on (:func:`moment`)."""

    who: Whose
    at: int
    raw: str

    @property
    def content(self) -> Content:
        return _kept[self.raw]


@dataclass
class Known:
    """All evidence in time order. ``own``: the agent's earlier answers. ``cut``: not all was read."""

    sources: list[Source] = field(default_factory=list)
    own: dict[str, None] = field(default_factory=dict)
    cut: bool = False
    _seen: set[tuple[Whose, str]] = field(default_factory=set)
    _ends: list[int] = field(default_factory=lambda: [0])

    @cached_property
    def _text(self) -> str:
        return "".join(f"{source.raw}\n" for source in self.sources)

    def add(self, who: Whose, at: int, value: Any) -> None:
        """Add a text or JSON value once. Call in time order."""
        if value is None or value == "" or value == []:
            return
        raw = spelled(value)
        if who == "told":
            self.own[raw] = None
        elif (who, raw) not in self._seen:
            self._seen.add((who, raw))
            end = self._ends[-1] + len(raw) + 1
            self.cut = self.cut or end > MOST_CHARS
            if not self.cut:
                self.sources.append(Source(who, at, raw))
                self._ends.append(end)

    def has(self, value: Value, at: int) -> bool:
        """Return whether the agent had a value by a time, in any spelling or rounded."""
        if len(value.text) >= _LEAST_VERBATIM and self._verbatim(value.text, at):  # most: no text is read
            return True
        if self.knows(set(_sought(value)), at):
            return True
        key = str(value.keys[0])
        if value.kind in (*NUMBERS, "date", "time", "duration") or len(key) < 5 or (key.isdigit() and len(key) < 9):
            return False
        return any(key in squeezed(fold(source.raw)) for source in self._by(at))

    def knows(self, keys: set[float | str], at: int) -> bool:
        return any(not keys.isdisjoint(source.content.keys) for source in self._by(at))

    def has_form(self, value: Value) -> bool:
        return any(form(value) in source.content.forms for source in self.sources if source.who != "call")

    def results(self, at: int) -> Iterator[Field]:
        for source in self._by(at):
            if source.who == "result":
                yield from source.content.fields

    def _by(self, at: int) -> Iterator[Source]:
        return reversed(self.sources[: bisect_right(self.sources, at, key=lambda source: source.at)])

    def _verbatim(self, text: str, at: int) -> bool:
        end = self._ends[bisect_right(self.sources, at, key=lambda source: source.at)]
        whole, place = self._text, self._text.find(text, 0, end)
        while place >= 0:  # a search for plain text takes a fraction of the time of a pattern with these borders
            if not _GOES_ON.match(whole, place + len(text)) and not _BEGUN.search(whole[max(0, place - 2) : place]):
                return True
            place = whole.find(text, place + 1, end)
        return False


def moment(at_ns: int, who: Whose = "result") -> int:
    """Convert a time to half nanoseconds. Call arguments are known just after their start."""
    return 2 * at_ns + (who == "call")


def evidence(trace: Trace, earlier: Iterable[tuple[Whose, Any]] = ()) -> Known:
    """Read the evidence of the trace's spans, and ``earlier`` session content."""
    found = Known()
    for who, value in earlier:
        found.add(who, 0, value)
    dated = [(moment(at, who), who, value) for at, who, value in (*held(trace), *shown(trace))]
    for at, who, value in sorted(dated, key=lambda each: each[0]):
        found.add(who, at, value)
    return found

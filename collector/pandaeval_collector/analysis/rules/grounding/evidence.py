"""What an agent had, and since when: instructions, definitions, the user's words, arguments and results of calls,
documents, of its trace and of the earlier ones of the session.

Each text, or JSON as text, is read once by its content, whatever traces repeat it: histories stand on every span. What
the agent said itself earlier is kept apart: it counts only as far as it was grounded then.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

import orjson

from pandaeval_collector.analysis.rules.grounding.before import Whose, held, shown, spelled
from pandaeval_collector.analysis.rules.grounding.values import MEASURED, NUMBERS, Value, fold, scan, squeezed
from pandaeval_otel.model import Trace

SENTENCE = re.compile(r"[.!?\n。！？](?:(?<![.!?])|(?=\s))")
_DEPTH, _NESTED = 40, 3
_MOST_GROUPS = 2_000
_LARGEST_GROUP = 24
"""Among more numbers than this any sum can be found by chance."""
_MOST_KEPT = 150_000
"""Values of all contents that are kept read."""
MOST_CHARS = 400_000
"""Characters of all evidence of a trace; the rest is not read, which is noted."""
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"[0-9]+|[^0-9]+")
_PLAIN_NUMBER = re.compile(r"\d[\d.,]*")
_WITHIN = re.compile(r"(?:[\w%°]|[^\W_][.,:\-/])\0|\0(?:[\w%°]|[.,:\-/][^\W_])")
"""A letter, a digit or a sign between two is next to a value (``\\0``), which so is part of a longer one."""
_APART = re.compile(r"(?<![^\W_])[.,:\-/]|[^\w%°.,:\-/]")
"""Behind such a sign a value may begin; behind any other it is part of a longer one."""
_LEAST_DIGITS, _LEAST_LETTERS = 3, 5
_COUNTS = re.compile(
    r"count|quantit|qty|number|num_|passenger|seat|bag|night|day|guest|people|item|hour|minute|percent|rate"
)
_WORTH = re.compile(r"price|cost|fee|amount|total|fare|balance|value|pay|tax|sum|charge|refund|usd|eur")
_OF_KEY = re.compile(r"(?:^|[_ ])(usd|eur|gbp|kg|lb|km|mile|mb|gb|kb|tb|mph|kmh|day|hour|minute|min|second)s?$")
_CURRENCIES = {"usd": "$", "eur": "EUR", "gbp": "GBP"}
_SMALL, _LONGEST_NAME = 31, 60


Group = tuple[frozenset[float], frozenset[float]]
"""Numbers that belong together (of an object, list, column or sentence): what is added, what is counted or a rate."""


class Content:
    """What one text, or JSON as text, holds. ``keys``: identifiers, addresses, digits, and those that identifiers end
    with; ``forms``: which kinds of values it has; ``money``: sorted, what may be an amount, each with the currencies
    that it has there; ``steps``: about how many calculations its ``groups`` ask for; ``objects``: the fields of JSON
    objects by their path of keys, and the texts among them, which may be names."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.keys: set[str] = set()
        self.forms: set[str] = set()
        self.units: dict[float, set[str]] = {}
        self.days: set[float] = set()
        self.times: set[float] = set()
        self.durations: set[float] = set()
        self.groups: list[Group] = []
        self.objects: list[tuple[dict[str, Value], list[str]]] = []
        self._any(raw, "", _DEPTH)
        self.money = sorted(number for number, units in self.units.items() if units != {MEASURED})
        self.steps = 1 + sum(len(worth) for worth, _ in self.groups)

    @cached_property
    def squeezed(self) -> str:
        """The letters and digits of the text."""
        return squeezed(fold(self.raw))

    @cached_property
    def things(self) -> set[float | str]:
        """Its identifiers and addresses, and days of any year."""
        return {*self.keys, *(f"day {day % 10000}" for day in self.days)}

    @property
    def size(self) -> int:
        """About how many values it holds."""
        return 8 + len(self.keys) + len(self.units) + 2 * len(self.groups) + len(self.raw) // 100

    def _any(self, value: Any, key: str, depth: int) -> list[tuple[str, Value]]:
        """Reads a value below a key; returns the short values that belong to the object around it."""
        if depth == 0 or value is None or isinstance(value, bool):
            return []
        if isinstance(value, str):
            inner = _parsed(value)
            return self._text(value, key) if inner is None else self._any(inner, key, depth - 1)
        if isinstance(value, dict):
            return self._object(value, key, depth)
        return self._list(value, key, depth) if isinstance(value, list) else self._number(str(value), key)

    def _text(self, text: str, key: str) -> list[tuple[str, Value]]:
        if _DIGIT.search(text) is None:
            return []
        text = fold(text).replace("\\n", "\n")
        values = [self._taken(value) for value in scan(text)]
        if len(values) == 1:
            return [(key, values[0])]
        ends = [match.start() for match in SENTENCE.finditer(text)] if values else []
        for _, sentence in groupby(values, key=lambda value: bisect_left(ends, value.end)):
            self._group([("", value) for value in sentence])
        return [(key, value) for value in values] if len(text) <= 40 else []

    def _number(self, text: str, key: str) -> list[tuple[str, Value]]:
        """Reads a number of JSON, whose key may tell its unit or that it is an amount."""
        number, digits, (_, is_worth, unit) = abs(float(text)), text.lstrip("-"), _told_by(key)
        if is_worth or unit in _CURRENCIES:
            value = Value("amount", text, 0, (number,), 1.0, _CURRENCIES.get(unit, ""))
        elif len(digits) >= 6 and digits.isdigit():
            value = Value("identifier", text, 0, (digits, number))
        else:
            value = Value("number", text, 0, (number,), 1.0, MEASURED if unit else "")
        return [(key, self._taken(value))]

    def _object(self, value: dict[str, Any], key: str, depth: int) -> list[tuple[str, Value]]:
        own: list[tuple[str, Value]] = []
        for name, item in value.items():
            self._text(name, "")
            own += self._any(item, f"{key}.{name[:_LONGEST_NAME]}" if key else name[:_LONGEST_NAME], depth - 1)
        if len(self.objects) < _MOST_GROUPS:
            begin = len(key) + 1 if key else 0
            names = [item for item in value.values() if isinstance(item, str) and 3 <= len(item) <= _LONGEST_NAME]
            self.objects.append(({path[begin:]: each for path, each in own[: 2 * _LARGEST_GROUP]}, names))
        self._group(own)
        return own if key.count(".") < _NESTED and len(own) <= _LARGEST_GROUP else []

    def _list(self, value: list[Any], key: str, depth: int) -> list[tuple[str, Value]]:
        columns: dict[str, list[tuple[str, Value]]] = {}
        for item in value:
            for name, each in self._any(item, key, depth - 1):
                columns.setdefault(name, []).append((name, each))
        totals: list[tuple[str, Value]] = []
        for name, column in columns.items():
            self._group(column)
            worth = [each.number for _, each in column if each.kind in NUMBERS]
            if len(worth) == len(column) and not _told_by(name)[0]:
                totals.append((name, Value("amount", "", 0, (sum(worth),))))
        return [*totals[:_LARGEST_GROUP], (f"{key} count", Value("number", "", 0, (float(len(value)),)))]

    def _taken(self, value: Value) -> Value:
        self.forms.add(form(value))
        for key in value.keys:
            if isinstance(key, str):
                self.keys.add(key)
                tail = key[len(key.rstrip("0123456789")) :] if value.kind == "identifier" else ""
                if len(tail) >= 3:
                    self.keys |= {tail, tail[-4:]}
            elif value.kind == "date":
                self.days.add(key)
            elif value.kind == "time":
                self.times.add(key)
            elif value.kind == "duration":
                self.durations.add(key)
            else:
                self.units.setdefault(key, set()).add(value.unit)
        return value

    def _group(self, members: Iterable[tuple[str, Value]]) -> None:
        """Notes which numbers belong together."""
        worth: set[float] = set()
        counts: set[float] = set()
        for key, value in members:
            if value.kind not in NUMBERS or not value.number:
                continue
            is_count, is_worth, _ = _told_by(key)
            is_count = value.unit == "%" or is_small(value.number) or (is_count and not is_worth)
            (counts if is_count and value.kind != "amount" else worth).add(value.number)
        if 2 <= len(worth | counts) <= _LARGEST_GROUP and len(self.groups) < _MOST_GROUPS:
            self.groups.append((frozenset(worth), frozenset(counts)))


def _parsed(text: str) -> Any:
    """Parses a text that is a JSON object, list or text of one; else returns ``None``."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"{', '"[')) or len(stripped) > MOST_CHARS:
        return None
    try:
        return orjson.loads(stripped)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def _told_by(key: str) -> tuple[bool, bool, str]:
    """Returns what a path of keys tells of its number: whether it counts, whether it is worth, its unit."""
    name = key.lower()
    unit = _OF_KEY.search(name.rpartition(".")[2])
    return _COUNTS.search(name) is not None, _WORTH.search(name) is not None, unit[1] if unit is not None else ""


def form(value: Value) -> str:
    """Returns the kind of a value, of an identifier its form: whether it is letters before digits or a mixture, and how
    long it is."""
    if value.kind != "identifier":
        return value.kind
    key = str(value.keys[0])
    runs = _RUN.findall(key)
    return f"{'mixed' if len(runs) > 2 else ''.join('9' if run[0].isdigit() else 'a' for run in runs)} {len(key)}"


def is_small(number: float) -> bool:
    """Returns whether a number may count things."""
    return 0 < number <= _SMALL and number == int(number)


class _Kept(dict[str, Content]):
    """Contents that were read, by their text. Safe on any thread."""

    count = 0

    def __missing__(self, raw: str) -> Content:
        content = Content(raw)
        if self.count > _MOST_KEPT:
            self.clear()
            self.count = 0
        self[raw] = content
        self.count += content.size
        return content


_kept = _Kept()


@dataclass
class Source:
    """A text, or JSON as text, that the agent had from ``at`` on (:func:`moment`). It is read when a value is looked
    for that does not stand in it to the letter."""

    who: Whose
    at: int
    raw: str

    @cached_property
    def content(self) -> Content:
        """What it holds."""
        return _kept[self.raw]


@dataclass
class Known:
    """All that the agent had, in order of time. ``own``: what it said itself in earlier answers. ``cut``: not all was
    read."""

    sources: list[Source] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    _seen: set[tuple[Whose, str]] = field(default_factory=set)
    _ends: list[int] = field(default_factory=lambda: [0])

    @cached_property
    def _text(self) -> str:
        return "".join(f"{source.raw}\n" for source in self.sources)

    def add(self, who: Whose, at: int, value: Any) -> None:
        """Adds a text or JSON value, unless it is there already. Called in order of time."""
        if value is None or value == "" or value == []:
            return
        raw = spelled(value)
        if who == "told":
            self.own.setdefault(raw, at)
        elif (who, raw) not in self._seen:
            self._seen.add((who, raw))
            end = self._ends[-1] + len(raw) + 1
            self.cut = self.cut or end > MOST_CHARS
            if not self.cut:
                self.sources.append(Source(who, at, raw))
                self._ends.append(end)

    def verbatim(self, value: Value, at: int) -> bool:
        """Returns whether a value stands in the evidence to the letter, and not within a longer one: most do, and to
        see that takes no reading. A short number may be anything."""
        wanted = [value.text]
        if value.kind == "amount":
            match = _PLAIN_NUMBER.search(value.text)
            if match is None or value.text[match.end() : match.end() + 1].isalnum():  # 12k
                return False
            if sum(map(str.isdigit, match[0])) < _LEAST_DIGITS:
                return False
            plain = f"{value.number:.12g}"
            wanted = [match[0], *([plain] if plain != match[0] and len(plain) > 2 else [])]
        elif len(value.text) < _LEAST_LETTERS:
            return False
        end = self._ends[self._known_by(at)]
        return any(_stands(text, self._text, end) for text in wanted)

    def by(self, at: int) -> Iterator[Content]:
        """Yields what the agent had by a time, the newest first: what is found there saves reading the rest."""
        return (source.content for source in reversed(self.sources[: self._known_by(at)]))

    def _known_by(self, at: int) -> int:
        return bisect_right(self.sources, at, key=lambda source: source.at)

    def near(self, ranges: Iterable[tuple[float, float]], at: int, unit: str) -> bool:
        """Returns whether an amount from one of the ranges was there, in this currency or in one that is not named."""
        asked = list(ranges)
        for content in self.by(at) if asked else ():
            money = content.money
            for least, most in asked if money else ():
                for number in money[bisect_left(money, least) : bisect_right(money, most)]:
                    if not content.units[number].isdisjoint(("", unit)):
                        return True
        return False

    def has_key(self, value: Value, at: int) -> bool:
        """Returns whether an identifier or address was there, in any spelling, or as a number."""
        key, number = str(value.keys[0]), value.keys[-1]
        if any(key in content.keys or number in content.units for content in self.by(at)):
            return True
        if len(key) < 5 or (key.isdigit() and len(key) < 9):
            return False
        return any(key in content.squeezed for content in self.by(at))


def _stands(wanted: str, text: str, end: int | None = None) -> bool:
    place = text.find(wanted, 0, end)
    while place >= 0:
        behind = place + len(wanted)
        if _WITHIN.search(f"{text[max(0, place - 2) : place]}\0{text[behind : behind + 2]}") is None:
            return True
        apart = _APART.search(text, place)  # else a value is looked for at every digit of a long number
        place = -1 if apart is None else text.find(wanted, apart.end(), end)
    return False


def moment(at_ns: int, who: Whose = "result") -> int:
    """Converts a time to half nanoseconds: arguments of a call are known just after it began, all else at its time."""
    return 2 * at_ns + (who == "call")


def evidence(trace: Trace, earlier: Iterable[tuple[Whose, Any]] = ()) -> Known:
    """Reads all that the trace's spans show, and ``earlier``, what earlier traces of its session held."""
    found = Known()
    for who, value in earlier:
        found.add(who, 0, value)
    dated = [(moment(at, who), who, value) for at, who, value in (*held(trace), *shown(trace))]
    for at, who, value in sorted(dated, key=lambda each: each[0]):
        found.add(who, at, value)
    return found

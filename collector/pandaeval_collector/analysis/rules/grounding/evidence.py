"""What an agent had, and since when: instructions, definitions, the user's words, arguments and results of calls,
documents, of its trace and of the earlier ones of the session.

Each text or JSON value is read once by its content, whatever traces repeat it: histories stand on every span. What the
agent said itself earlier is kept apart: it counts only as far as it was grounded then.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from pandaeval_collector.analysis.rules.grounding.before import Whose, held, parsed, shown
from pandaeval_collector.analysis.rules.grounding.values import Value, fold, scan, squeezed
from pandaeval_otel.model import Trace

SENTENCE = re.compile(r"[.!?](?=\s)|[。！？]|\n")
_DEPTH, _NESTED = 40, 3
_MOST_GROUPS = 2_000
_LARGEST_GROUP = 24
"""Among more numbers than this any sum can be found by chance."""
_MOST_KEPT = 150_000
"""Values of all contents that are kept read."""
MOST_CHARS = 400_000
"""Characters of all evidence of a trace; the rest is not read, which is noted."""
_DIGIT = re.compile(r"[0-9]")
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
_OF_KEY = re.compile(r"(?:^|[_ ])(kg|lb|km|mile|mb|gb|kb|tb|mph|kmh|usd|eur|gbp|day|hour|minute|min|second)s?$")
_MONEY_KEYS = {"usd": "$", "eur": "EUR", "gbp": "GBP"}
_SIZES = (
    {"ms": 1 / 60_000, "second": 1 / 60, "sec": 1 / 60, "s": 1 / 60, "minute": 1.0, "min": 1.0, "hour": 60.0,
     "day": 1440.0, "week": 10_080.0, "month": 43_800.0, "year": 525_600.0},
    {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
    {"g": 1.0, "kg": 1e3, "lb": 453.592},
    {"m": 1.0, "km": 1e3, "ft": 0.3048, "mile": 1609.34},
    {"km/h": 1.0, "kmh": 1.0, "mph": 1.60934},
    {"c": 1.0, "f": 5 / 9},
)  # fmt: skip
"""Units of time (in minutes), data, weight, length, speed and heat, which measure the same and can be converted."""
SIZES_WITH = {unit: sizes for sizes in _SIZES for unit in sizes}
MINUTES = _SIZES[0]
_COUNT = "count"
"""The unit of how many members a list or object has."""
_SMALL = 31
_WORDS = re.compile(r"[^\W\d_]+")
NUMBER_OF = {
    word: float(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
        "dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze",
        "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
        "два три четыре пять шесть семь восемь девять десять",
    )
    for number, word in enumerate(words.split(), 2)
}
"""How small numbers are spelled out."""


@dataclass(slots=True)
class Group:
    """Numbers that belong together: of one object, list, column or sentence. ``worth``: what is added; ``counts``: what
    is counted or a rate; a number may be both."""

    worth: frozenset[float]
    counts: frozenset[float]


class Content:
    """What one text or JSON value holds. ``keys``: identifiers, addresses, and the digits that identifiers end with;
    ``forms``: which kinds of values it has; ``numbers``: sorted, of every kind, each with its units in ``units``;
    ``steps``: about how many calculations its ``groups`` ask for;
    ``objects``: the fields of JSON objects by their path of keys, and the texts among them, which may be names."""

    def __init__(self, value: Any) -> None:
        self.keys: set[str] = set()
        self.forms: set[str] = set()
        self.units: dict[float, set[str]] = {}
        self.days: set[float] = set()
        self.times: set[float] = set()
        self.durations: set[float] = set()
        self.groups: list[Group] = []
        self.objects: list[tuple[dict[str, Value], set[str]]] = []
        self._texts: list[str] = []
        self._any(value, "", _DEPTH)
        self.text = "\n".join(self._texts)
        self.numbers = sorted(self.units)
        self.steps = 1 + sum(len(group.worth) for group in self.groups)

    @cached_property
    def squeezed(self) -> str:
        """The letters and digits of the text."""
        return squeezed(self.text)

    @property
    def size(self) -> int:
        """About how many values it holds."""
        return 8 + len(self.keys) + len(self.units) + 2 * len(self.groups) + len(self.text) // 100

    def _number(self, number: float, unit: str = "") -> None:
        self.units.setdefault(number, set()).add(unit)

    def _take(self, value: Value) -> None:
        self.forms.add(form(value))
        for key in value.keys:
            if isinstance(key, str):
                self.keys.add(key)
                tail = key[len(key.rstrip("0123456789")) :] if value.kind == "identifier" else ""
                self.keys.update(tail[-length:] for length in {4, len(tail)} if 3 <= length <= len(tail))
            elif value.kind == "date":
                self.days.add(key)
                self._number(key // 10000, "year")
            elif value.kind == "time":
                self.times.add(key)
            elif value.kind != "duration":
                self._number(key, value.unit)
        if value.unit in MINUTES:
            self.durations.add(value.number * MINUTES[value.unit])
        elif value.kind == "percentage":
            self._number(value.number / 100)
        elif value.kind == "number" and " " in value.text:  # two numbers side by side, or blanks between groups
            for part in value.text.split():
                if part.isdigit():
                    self._number(float(part))

    def _any(self, value: Any, key: str, depth: int) -> list[tuple[str, Value]]:
        """Reads a value below a key; returns the short values that belong to the object around it."""
        if depth == 0 or value is None or isinstance(value, bool):
            return []
        if isinstance(value, str):
            inner = parsed(value) if value[:1] in '{["' or value[:1].isspace() else None
            if inner is not None:
                return self._any(inner, key, depth - 1)
            return self._text(value.replace("\\n", "\n") if "\\n" in value else value, key)
        if isinstance(value, dict):
            return self._object(value, key, depth)
        if isinstance(value, list | tuple):
            return self._list(value, key, depth)
        return self._of_json(str(value), key) if isinstance(value, int | float) else self._text(str(value), key)

    def _text(self, text: str, key: str) -> list[tuple[str, Value]]:
        text = fold(text)
        self._texts.append(text)
        if " " in text:
            for word in NUMBER_OF.keys() & _WORDS.findall(text.casefold()):
                self._number(NUMBER_OF[word])
        if _DIGIT.search(text) is None:
            return []
        values = scan(text)
        for value in values:
            self._take(value)
        if len(values) == 1:
            return [(key, values[0])]
        ends = [match.start() for match in SENTENCE.finditer(text)] if values else []
        for _, sentence in groupby(values, key=lambda value: bisect_left(ends, value.end)):
            self._group([("", value) for value in sentence])
        return [(key, value) for value in values] if len(text) <= 40 else []

    def _of_json(self, text: str, key: str) -> list[tuple[str, Value]]:
        """Reads a number, whose key may tell its unit or that it is an amount."""
        self._texts.append(text)
        number, digits = float(text), text.lstrip("-")
        match = _OF_KEY.search(key.rpartition(".")[2].lower())
        unit = match[1] if match is not None else ""
        if unit in _MONEY_KEYS or _WORTH.search(key.lower()):
            value = Value("amount", text, 0, (abs(number),), 1.0, _MONEY_KEYS.get(unit, ""))
        elif len(digits) >= 6 and digits.isdigit():
            value = Value("identifier", text, 0, (digits, abs(number)), 1.0, unit)
        else:
            value = Value("number", text, 0, (abs(number),), 1.0, unit)
        self._take(value)
        return [(key, value)]

    def _object(self, value: dict[Any, Any], key: str, depth: int) -> list[tuple[str, Value]]:
        own: list[tuple[str, Value]] = []
        self._number(float(len(value)), _COUNT)
        for name, item in value.items():
            self._text(str(name), "")
            own += self._any(item, f"{key}.{name}" if key else str(name), depth - 1)
        if len(self.objects) < _MOST_GROUPS:
            begin = len(key) + 1 if key else 0
            names = {fold(item).casefold() for item in value.values() if isinstance(item, str) and 3 <= len(item) <= 60}
            self.objects.append(({path[begin:]: each for path, each in own[: 2 * _LARGEST_GROUP]}, names))
        self._group(own)
        return own if key.count(".") < _NESTED and len(own) <= _LARGEST_GROUP else []

    def _list(self, value: Sequence[Any], key: str, depth: int) -> list[tuple[str, Value]]:
        self._number(float(len(value)), _COUNT)
        columns: dict[str, list[tuple[str, Value]]] = {}
        for item in value:
            for name, each in self._any(item, key, depth - 1):
                columns.setdefault(name, []).append((name, each))
        totals: list[tuple[str, Value]] = []
        for name, column in columns.items():
            self._group(column)
            worth = [each.number for _, each in column if each.kind in ("amount", "number")]
            if len(worth) == len(column) and not _COUNTS.search(name.lower()):
                totals.append((name, Value("amount", "", 0, (sum(worth),))))
        return [*totals[:_LARGEST_GROUP], (f"{key} count", Value("number", "", 0, (float(len(value)),)))]

    def _group(self, members: Iterable[tuple[str, Value]]) -> None:
        """Notes which numbers belong together."""
        worth: set[float] = set()
        counts: set[float] = set()
        for key, value in members:
            if value.kind not in ("amount", "number", "percentage", "duration") or not value.number:
                continue
            name = key.lower()
            is_count = value.kind != "amount" and (
                value.kind in ("percentage", "duration")
                or (value.kind == "number" and is_small(value.number))
                or (_COUNTS.search(name) is not None and _WORTH.search(name) is None)
            )
            (counts if is_count else worth).add(value.number)
        if 2 <= len(worth | counts) <= _LARGEST_GROUP and len(self.groups) < _MOST_GROUPS:
            self.groups.append(Group(frozenset(worth), frozenset(counts)))


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


class _Kept:
    """Contents that were read, by their text: those that were asked for last. Safe on any thread."""

    def __init__(self) -> None:
        self._new: dict[str, Content] = {}
        self._old: dict[str, Content] = {}
        self._values = 0

    def read(self, raw: str, value: Any) -> Content:
        """Returns what a text or JSON value holds, ``raw`` as text; one that was read lately is not read again."""
        content = self._new.get(raw)
        if content is None:
            content = self._old.get(raw) or Content(value)
            if self._values > _MOST_KEPT // 2:
                self._old, self._new, self._values = self._new, {}, 0
            self._new[raw] = content
            self._values += content.size
        return content


_kept = _Kept()


@dataclass
class Source:
    """A text or JSON value that the agent had from ``at`` on (:func:`moment`), as ``raw`` text. It is read when a value
    is looked for that does not stand in it to the letter."""

    who: Whose
    at: int
    raw: str
    value: Any

    @cached_property
    def content(self) -> Content:
        """What it holds."""
        return _kept.read(self.raw, self.value)


@dataclass(slots=True)
class Known:
    """All that the agent had. ``own``: what it said itself in earlier answers. ``cut``: not all was read."""

    sources: list[Source] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    _seen: set[tuple[Whose, str]] = field(default_factory=set)
    _chars: int = 0

    def add(self, who: Whose, at: int, value: Any) -> None:
        """Adds a text or JSON value, unless it is there already. Called in order of time."""
        if value is None or value == "" or value == []:
            return
        if who == "told":
            if isinstance(value, str):
                self.own.setdefault(value, at)
            return
        raw = value if isinstance(value, str) else repr(value)
        if (who, raw) in self._seen:
            return
        self._seen.add((who, raw))
        self._chars += len(raw)
        if self._chars > MOST_CHARS:
            self.cut = True
        else:
            self.sources.append(Source(who, at, raw, value))

    def verbatim(self, value: Value, at: int) -> bool:
        """Returns whether a value stands in the evidence to the letter, and not within a longer one: most do, and to
        see that takes no reading. A short number may be anything."""
        wanted = [value.text]
        if value.kind in ("amount", "percentage") or (value.kind == "number" and not value.unit):
            match = _PLAIN_NUMBER.search(value.text)
            if match is None or value.text[match.end() : match.end() + 1].isalnum():  # 12k
                return False
            if sum(map(str.isdigit, match[0])) < (_LEAST_DIGITS if value.kind == "amount" else 2):
                return False
            plain = f"{value.number:.12g}"
            wanted = [match[0], *([plain] if plain != match[0] and len(plain) > 2 else [])]
        elif len(value.text) < _LEAST_LETTERS:
            return False
        return any(source.at <= at and _stands(text, source.raw) for source in self.sources for text in wanted)

    def by(self, at: int) -> Iterator[Content]:
        """Yields what the agent had by a time, the newest first: what is found there saves reading the rest."""
        return (source.content for source in reversed(self.sources) if source.at <= at)

    def near(self, number: float, tolerance: float, at: int, unit: str = "", money: bool = False) -> bool:
        """Returns whether a number within ``tolerance`` was there, in the same unit or one that is not named; for
        ``money``, in no unit of anything else."""
        for content in self.by(at):
            numbers = content.numbers
            place = bisect_left(numbers, number - tolerance)
            while place < len(numbers) and numbers[place] <= number + tolerance:
                if any(_fits(unit, each, money) for each in content.units[numbers[place]]):
                    return True
                place += 1
        return False

    def has_key(self, key: str, at: int) -> bool:
        """Returns whether an identifier or address was there, in any spelling."""
        if any(key in content.keys for content in self.by(at)):
            return True
        if len(key) < 5 or (key.isdigit() and len(key) < 9):
            return False
        return any(key in content.squeezed for content in self.by(at))


def _stands(wanted: str, text: str) -> bool:
    place = text.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        if _WITHIN.search(f"{text[max(0, place - 2) : place]}\0{text[end : end + 2]}") is None:
            return True
        apart = _APART.search(text, place)  # else a value is looked for at every digit of a long number
        place = -1 if apart is None else text.find(wanted, apart.end())
    return False


def _fits(unit: str, other: str, money: bool) -> bool:
    """Returns whether a number of evidence in the unit ``other`` may be one that is stated in ``unit``."""
    if unit == other or not other:
        return True
    is_currency = other in ("$", "¥") or other.isupper()
    if money or is_currency:
        return not unit and is_currency
    return not unit or other not in SIZES_WITH.get(unit, ())


def moment(at_ns: int, who: Whose = "result") -> int:
    """Converts a time to half nanoseconds: arguments of a call are known just after it began, all else at its time."""
    return 2 * at_ns + (who == "call")


def evidence(trace: Trace, earlier: Iterable[tuple[Whose, Any]] = ()) -> Known:
    """Reads all that the trace's spans show, and ``earlier``, what earlier traces of its session held."""
    dated = [*held(trace), *shown(trace)]
    dated.sort(key=lambda each: moment(each[0], each[1]))
    found = Known()
    for who, value in earlier:
        found.add(who, 0, value)
    for at, who, value in dated:
        found.add(who, moment(at, who), value)
    return found

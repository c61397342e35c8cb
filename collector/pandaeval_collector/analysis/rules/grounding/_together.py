"""Which numbers of a source belong together, so that a sum or a product of them means something.

Those of one object (of a small one all, of a larger one those that stand in it itself), those under one key of the
objects of a list, those of a list of numbers, and those of one sentence of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pandaeval_collector.analysis.rules.grounding._patterns import readings
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import parsed
from pandaeval_collector.analysis.rules.grounding._value import AMOUNT, DURATION, NUMBER, PERCENTAGE, fold


class Group(NamedTuple):
    """Numbers that belong together: ``worth`` are amounts or measures, ``counts`` are numbers of things. Counts can be
    added to counts, and amounts multiplied by them; an amount plus a count means nothing."""

    worth: frozenset[float]
    counts: frozenset[float]

    @property
    def all(self) -> frozenset[float]:
        return self.worth | self.counts


SENTENCE = re.compile(r"(?<=[.!?;。！？])\s+|\n+|(?<=[。！？])")
MOST_GROUPS = 2_000
_MOST_TOGETHER = 24
"""Numbers of an object and all that it holds; a larger one is looked at part by part."""
_LONGEST = 20_000
_DEPTH = 12
_LONGEST_NAME = 40
_WORD = re.compile(r"[^\W\d_]{4,}")
_COUNT = re.compile(
    r"seats|(?<!ac)(?<!dis)count|quantit|qty|availab|stock|passengers|bag(?:gage)?s\b|nights|guests|people|persons|rooms|stops|rating|"
    r"rank|(?:\b|_)num(?:ber)?(?:\b|_)|\bpage|index|(?:\b|_)age\b|(?:\b|_)year\b|hours|minutes",
    re.IGNORECASE,
)
_WORTH = re.compile(r"price|cost|fee|rate\b|amount|total|charge|paid|payment|refund|balance|usd|eur", re.IGNORECASE)
"""``_COUNT`` matches keys of numbers that count or order something, unless ``_WORTH`` finds an amount of money."""
_MOST_COUNTED = 31.0
_OF_ANYTHING = frozenset(
    {
        "amount",
        "price",
        "total",
        "cost",
        "payment",
        "payments",
        "value",
        "number",
        "date",
        "name",
        "type",
        "item",
        "items",
        "status",
        "method",
        "methods",
        "user",
        "with",
        "your",
        "will",
        "have",
        "that",
        "this",
        "which",
        "from",
    }
)
"""Words that tell none of the numbers of a result from the others."""


def together(value: Any, depth: int = _DEPTH) -> Iterator[Group]:
    """Yields the groups of at least two numbers in a text or JSON value."""
    if depth == 0:
        return
    if isinstance(value, str):
        inner = parsed(value)
        if inner is not None:
            yield from together(inner, depth - 1)
        elif len(value) <= _LONGEST:
            yield from _useful(of_text(each) for each in SENTENCE.split(fold(value)))
    elif isinstance(value, dict):
        whole = _parted(_paths(value).items())
        if len(whole.all) > _MOST_TOGETHER:
            own = {key: item for key, item in value.items() if not isinstance(item, dict | list | tuple)}
            whole = _parted((str(key), _of(item)) for key, item in own.items())
        yield from _useful([whole])
        for item in value.values():
            if isinstance(item, dict | list | tuple | str):
                yield from together(item, depth - 1)
    elif isinstance(value, list | tuple):
        columns: dict[str, set[float]] = {}
        for item in value:
            for path, numbers in _paths(item).items():
                columns.setdefault(path, set()).update(numbers)
        length = frozenset([float(len(value))])
        parts = (_parted([(path, column)]) for path, column in columns.items())
        yield from _useful(Group(each.worth, each.counts | length) for each in parts)
        for item in value:
            if isinstance(item, dict | list | tuple | str):
                yield from together(item, depth - 1)


def named(
    value: Any, words: frozenset[str] = frozenset(), depth: int = _DEPTH
) -> Iterator[tuple[float, frozenset[str]]]:
    """Yields the numbers of JSON, each with the words that name it: those of its keys and of short texts beside it."""
    if depth == 0:
        return
    if isinstance(value, str):
        inner = parsed(value)
        if inner is not None:
            yield from named(inner, words, depth - 1)
    elif isinstance(value, dict):
        beside = [item for item in value.values() if isinstance(item, str) and len(item) <= _LONGEST_NAME]
        here = words | words_of(" ".join(beside))
        for key, item in value.items():
            if isinstance(item, dict | list | tuple | str):
                yield from named(item, here | words_of(str(key)), depth - 1)
            else:
                yield from ((number, here | words_of(str(key))) for number in _of(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from named(item, words, depth - 1)


def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text that may name a thing."""
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _OF_ANYTHING


def of_text(text: str) -> Group:
    """Returns the numbers of a text for calculations. Without a currency, a small whole number is a count."""
    worth: set[float] = set()
    counts: set[float] = set()
    for value in scan(text):
        numbers = readings(value.text)[0] if value.kind == DURATION else value.readings
        if value.kind == AMOUNT:
            worth.update(numbers)
        elif value.kind in (NUMBER, PERCENTAGE, DURATION):
            for number in numbers:
                (counts if value.kind != NUMBER or is_small(number) else worth).add(number)
    return Group(frozenset(worth), frozenset(counts))


def is_small(number: float) -> bool:
    """Returns whether a number may count things."""
    return number == int(number) and 0 <= number <= _MOST_COUNTED if abs(number) < 1e15 else False


def _parted(numbers: Iterable[tuple[str, Iterable[float]]]) -> Group:
    """Splits numbers into amounts and counts by their keys."""
    worth: set[float] = set()
    counts: set[float] = set()
    for path, found in numbers:
        counted = _COUNT.search(path) is not None and _WORTH.search(path) is None
        (counts if counted else worth).update(found)
    return Group(frozenset(worth), frozenset(counts))


def _useful(groups: Iterable[Group]) -> Iterator[Group]:
    return (each for each in groups if len(each.all) > 1)


def _paths(value: Any, path: str = "", depth: int = 4) -> dict[str, set[float]]:
    """Returns the numbers of an object by key, those of nested objects by their path of keys."""
    if not isinstance(value, dict):
        return {path: set(_of(value))}
    found: dict[str, set[float]] = {}
    if depth:
        for key, item in value.items():
            for inner, numbers in _paths(item, f"{path}.{key}", depth - 1).items():
                found.setdefault(inner, set()).update(numbers)
    return found


def _of(value: Any) -> frozenset[float]:
    if isinstance(value, bool):
        return frozenset()
    if isinstance(value, int | float):
        return frozenset({float(value)}) if abs(value) < 1e15 else frozenset()
    if isinstance(value, str) and len(value) <= 200 and any(map(str.isdigit, value)):
        return of_text(fold(value)).all
    return frozenset()

"""Which numbers of a source belong together, so that a sum or a product of them means something.

Those of one object (of a small one all, of a larger one those that stand in it itself), those under one key of the
objects of a list, those of a list of numbers, and those of one sentence of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pandaeval_collector.analysis.rules.grounding._fold import fold
from pandaeval_collector.analysis.rules.grounding._numbers import readings
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import parsed
from pandaeval_collector.analysis.rules.grounding._value import AMOUNT, DURATION, NUMBER, PERCENTAGE

Group = frozenset[float]
SENTENCE = re.compile(r"(?<=[.!?;。！？])\s+|\n+|(?<=[。！？])")
MOST_GROUPS = 2_000
_MOST_TOGETHER = 24
"""Numbers of an object and all that it holds; a larger one is looked at part by part."""
_LONGEST = 20_000
_DEPTH = 12
_LONGEST_NAME = 40
_WORD = re.compile(r"[^\W\d_]{4,}")
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
    """The groups of two numbers and more of a text or a value of JSON."""
    if depth == 0:
        return
    if isinstance(value, str):
        inner = parsed(value)
        if inner is not None:
            yield from together(inner, depth - 1)
        elif len(value) <= _LONGEST:
            yield from _useful(in_text(each) for each in SENTENCE.split(fold(value)))
    elif isinstance(value, dict):
        whole = frozenset(number for numbers in _paths(value).values() for number in numbers)
        own = (item for item in value.values() if not isinstance(item, dict | list | tuple))
        yield from _useful([whole if len(whole) <= _MOST_TOGETHER else frozenset(n for each in own for n in _of(each))])
        for item in value.values():
            if isinstance(item, dict | list | tuple | str):
                yield from together(item, depth - 1)
    elif isinstance(value, list | tuple):
        columns: dict[str, set[float]] = {}
        for item in value:
            for path, numbers in _paths(item).items():
                columns.setdefault(path, set()).update(numbers)
        length = float(len(value))
        yield from _useful(frozenset({*column, length}) for column in columns.values())
        for item in value:
            if isinstance(item, dict | list | tuple | str):
                yield from together(item, depth - 1)


def named(
    value: Any, words: frozenset[str] = frozenset(), depth: int = _DEPTH
) -> Iterator[tuple[float, frozenset[str]]]:
    """The numbers of JSON, each with the words that name it: of its keys, and of short texts beside it."""
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
    """The words of a text that may name a thing."""
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _OF_ANYTHING


def in_text(text: str) -> Group:
    """The numbers of a text that one may calculate with."""
    found: set[float] = set()
    for value in scan(text):
        if value.kind in (NUMBER, AMOUNT, PERCENTAGE):
            found.update(value.readings)
        elif value.kind == DURATION:
            found.update(readings(value.text)[0])
    return frozenset(found)


def _useful(groups: Any) -> Iterator[Group]:
    return (each for each in groups if len(each) > 1)


def _paths(value: Any, path: str = "", depth: int = 4) -> dict[str, set[float]]:
    """The numbers of an object by their keys, those of objects in it by the keys on the way."""
    if not isinstance(value, dict):
        return {path: set(_of(value))}
    found: dict[str, set[float]] = {}
    if depth:
        for key, item in value.items():
            for inner, numbers in _paths(item, f"{path}.{key}", depth - 1).items():
                found.setdefault(inner, set()).update(numbers)
    return found


def _of(value: Any) -> Group:
    if isinstance(value, bool):
        return frozenset()
    if isinstance(value, int | float):
        return frozenset({float(value)}) if abs(value) < 1e15 else frozenset()
    if isinstance(value, str) and len(value) <= 200 and any(map(str.isdigit, value)):
        return in_text(fold(value))
    return frozenset()

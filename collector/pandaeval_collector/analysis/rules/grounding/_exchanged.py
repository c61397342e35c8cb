"""Two values of a result that an answer gives to each other's owner: both are known, and each is said of the other.

Only an exchange is told, since each half of it vouches for the other one: the answer calls one value by the key of the
second and the second by the key of the first, or has one in lines that name the object that the other belongs to, and
the other in lines that name that of the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import RESULT, Source, parsed
from pandaeval_collector.analysis.rules.grounding._value import AMOUNT, DATE, IDENTIFIER, NUMBER, TIME, Value, fold

_KINDS = {AMOUNT: "number", NUMBER: "number", DATE: "date", TIME: "time", IDENTIFIER: "identifier"}
_MOST_VALUES, _MOST_OBJECTS, _MOST_PLACES = 60, 200, 4
_DEPTH = 12
_LABEL = 48
"""Characters before a value in which its name stands, behind the value before."""
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = re.compile(r"[\d\n]")
_NAME = re.compile(r"[^\W\d_]{3}")
Thing = tuple[str, float | str]
"""A value whatever its spelling: its kind, and what it stands for."""


@dataclass(slots=True)
class _Object:
    """An object of a result: those of its values that the answer states, by key, and the texts that name it."""

    fields: dict[str, Thing] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)


def exchanged(answer: str, values: Sequence[Value], sources: Sequence[Source], at: int) -> Iterator[tuple[Value, str]]:
    """Yields the first of each two values that the answer exchanges, and what results have in its place."""
    places = _places(values)
    if len(places) < 2:
        return
    told: set[Thing] = set()
    for source in sources:
        if source.who != RESULT or source.at > at:
            continue
        for group in _groups(source.raw, frozenset(places)):
            for one, other, key in (*_by_key(group, places, answer), *_by_name(group, places, answer)):
                if told.isdisjoint((one, other)):
                    told |= {one, other}
                    first, second = places[one][0], places[other][0]
                    yield first, f"results have {second.text} there ({key})"


def _places(values: Sequence[Value]) -> dict[Thing, list[Value]]:
    places: dict[Thing, list[Value]] = {}
    for value in values[:_MOST_VALUES]:
        if (thing := _thing(value)) is not None:
            places.setdefault(thing, []).append(value)
    return {thing: found for thing, found in places.items() if len(found) <= _MOST_PLACES}


def _thing(value: Value) -> Thing | None:
    kind = _KINDS.get(value.kind)
    if kind == "identifier":
        return kind, value.key
    if kind is None or not value.readings:
        return None
    return kind, value.readings[0] % 10000 if kind == "date" else value.readings[0]


def _groups(value: Any, wanted: frozenset[Thing], depth: int = _DEPTH) -> Iterator[list[_Object]]:
    """Yields the objects of each list, or each object by itself, that hold values of the answer."""
    if depth == 0:
        return
    if isinstance(value, str):
        inner = parsed(value)
        if inner is not None:
            yield from _groups(inner, wanted, depth - 1)
        return
    items = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    objects = [each for each in items if isinstance(each, dict)][:_MOST_OBJECTS]
    group = [found for each in objects if (found := _object(each, wanted)).fields]
    if group:
        yield group
    if isinstance(value, dict) and depth == _DEPTH and len((top := _object(value, wanted)).fields) > 1:
        yield [top]
    for item in items:
        if isinstance(item, dict | list | tuple | str):
            yield from _groups(item, wanted, depth - 1)


def _object(value: Mapping[str, Any], wanted: frozenset[Thing], path: str = "", depth: int = 3) -> _Object:
    found = _Object()
    for key, item in value.items():
        name = f"{path}{key}"
        if isinstance(item, dict) and depth:
            inner = _object(item, wanted, f"{name} ", depth - 1)
            found.fields |= inner.fields
            found.texts |= inner.texts
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            text = fold(str(item))
            for each in scan(text) if len(text) <= 40 else ():
                if (thing := _thing(each)) in wanted and thing is not None:
                    found.fields[f"{name} {thing[0]}" if thing[0] != "identifier" else name] = thing
            if 3 <= len(text) <= 60 and _NAME.search(text) is not None:
                found.texts.add(text.casefold())
    return found


def _by_key(
    group: Sequence[_Object], places: Mapping[Thing, list[Value]], answer: str
) -> Iterator[tuple[Thing, Thing, str]]:
    for each in group:
        for (key, one), (other_key, other) in combinations(each.fields.items(), 2):
            if one == other or one[0] != other[0]:
                continue
            mine, its = _words(key), _words(other_key)
            if not (mine - its and its - mine):
                continue
            if _called(places[one], its, mine, answer) and _called(places[other], mine, its, answer):
                yield one, other, other_key.rpartition(" ")[0] or other_key


def _called(values: Sequence[Value], by: frozenset[str], and_not: frozenset[str], answer: str) -> bool:
    """Returns whether the label of every place of a value has all words ``by``, and not all words ``and_not``."""
    labels = [_label(answer, value) for value in values]
    return all(by <= label and not and_not <= label for label in labels)


def _label(answer: str, value: Value) -> frozenset[str]:
    before = _APART.split(answer[max(0, value.start - _LABEL) : value.start])[-1]
    return frozenset(word.casefold() for word in _WORD.findall(before))


def _words(key: str) -> frozenset[str]:
    """Returns the words of a key, without the kind of its value."""
    path, _, kind = key.rpartition(" ")
    name = path if kind in _KINDS.values() and path else key
    return frozenset(
        word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", name.rpartition(" ")[2]).replace("_", " "))
    )


def _by_name(
    group: Sequence[_Object], places: Mapping[Thing, list[Value]], answer: str
) -> Iterator[tuple[Thing, Thing, str]]:
    if len(group) < 2:
        return
    text = answer.casefold()
    if len(text) != len(answer):
        return
    for mine, its in combinations(group[:_MOST_VALUES], 2):
        for key, one in mine.fields.items():
            other = its.fields.get(key)
            if other is None or other == one or _is_nested(key):
                continue
            names = _names(mine.texts - its.texts, one, other), _names(its.texts - mine.texts, one, other)
            owner = [[_owner(text, value, names) for value in places[each]] for each in (one, other)]
            if all(each == 1 for each in owner[0]) and all(each == 0 for each in owner[1]):
                yield one, other, key.rpartition(" ")[0] or key


def _is_nested(key: str) -> bool:
    """Returns whether a key leads to a part of the object (an option, a fare), which is compared within one line."""
    path, _, kind = key.rpartition(" ")
    return " " in (path if kind in _KINDS.values() else key)


def _names(texts: set[str], *values: Thing) -> list[str]:
    return [text for text in texts if not any(str(value[1]) in text.replace("-", "") for value in values)]


def _owner(text: str, value: Value, names: tuple[list[str], list[str]]) -> int | None:
    """Returns which of two objects the line of a value names, 0 or 1; ``None`` unless it names exactly one."""
    start, end = text.rfind("\n", 0, value.start) + 1, text.find("\n", value.start)
    line = text[start : end if end >= 0 else len(text)]
    found = [any(name in line for name in each) for each in names]
    return None if found[0] == found[1] else found.index(True)

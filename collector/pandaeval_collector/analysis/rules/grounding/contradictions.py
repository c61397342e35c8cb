"""Claims that the calls or results contradict: one function for each kind of contradiction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules.grounding.claims import HOURS, Claim, answers, arguments, changing
from pandaeval_collector.analysis.rules.grounding.evidence import Known, form, moment
from pandaeval_collector.analysis.rules.grounding.values import Value, fold, squeezed, times, values_of
from pandaeval_otel.model import Trace

_MOST_FIELDS, _MOST_OBJECTS, _LONGEST_ARGUMENT = 60, 200, 60
_COUNTED = re.compile(r"(?<![\w.,:\-/$])(\d{1,4})\s+([^\W\d_]{3,})")
_WORD = re.compile(r"[^\W\d_]{3,}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_AFTER_VALUE = re.compile(r"\d[\d.,:]*")
Contradiction = tuple[Claim, str]
"""A claim, and what the calls or results say instead."""
Places = Mapping[float | str, Sequence[tuple[Claim, set[str]]]]
"""By value, the claims of it with the words before them."""


class Used:
    """What successful calls that change something were called with, each with a sentence: ``values``; and ``counts``,
    the small whole numbers by the stem of their key."""

    def __init__(self, trace: Trace) -> None:
        self.values: list[tuple[Value, str]] = []
        self.counts: dict[str, list[tuple[int, str]]] = {}
        for call in changing(trace):
            if failed(call):
                continue
            for key, item in arguments(call.arguments):
                text = fold(str(item)).strip()
                self._add(key, text, f"{call.name} was called with {key} {text}")

    def _add(self, key: str, text: str, reason: str) -> None:
        if len(text) <= _LONGEST_ARGUMENT:
            self.values += [(value, reason) for value in values_of(text) if value.text == text]
        if text.isdecimal() and len(text) <= 4:
            self.counts.setdefault(_stem(key.rpartition("_")[2]), []).append((int(text), reason))


class _Owned(NamedTuple):
    """A value of a result's object that the answer states. ``owner``: the words of its key and of the object's
    names."""

    row: int
    key: str
    thing: float | str
    owner: set[str]


def contradictions(trace: Trace, stated: Sequence[Claim], had: Known, used: Used) -> dict[Claim, str]:
    """Returns claims that say otherwise than what was called or found, with that."""
    found = dict(_replaced(stated, had, used))
    for text, end, span_id in answers(trace):
        at = moment(end)
        mine = [claim for claim in stated if claim.span_id == span_id]
        found.update(_closing_times(text, mine, had, at))
        found.update(_exchanged(mine[:_MOST_FIELDS], had, at))
    return found


def miscounts(trace: Trace, used: Used) -> Iterator[Contradiction]:
    """Yields claims such as "3 passengers", if no argument of this key has that number."""
    if not used.counts:
        return
    for text, end, span_id in answers(trace):
        for match in _COUNTED.finditer(text):
            counted = used.counts.get(_stem(match[2]), [])
            numbers = [number for number, _ in counted]
            if counted and int(match[1]) not in {*numbers, sum(numbers)}:
                value = Value("number", match[0], match.start(), (float(match[1]),))
                yield Claim(value, moment(end), span_id, text, text), counted[0][1]


def _replaced(stated: Sequence[Claim], had: Known, used: Used) -> Iterator[Contradiction]:
    """Yields identifiers and dates that the user named and the answer says, but that a call replaced. If the answer
    names the other value, too, it may explain why."""
    if not used.values:
        return
    answered = {_thing(claim.value) for claim in stated}
    things = [(_thing(value), reason) for value, reason in used.values]
    for claim in stated:
        mine = _thing(claim.value)
        if claim.value.kind not in ("identifier", "date") or any(thing == mine for thing, _ in things):
            continue
        alike = [pair for pair, (value, _) in zip(things, used.values, strict=True) if form(value) == form(claim.value)]
        if not alike or any(thing in answered for thing, _ in alike):
            continue
        whose = {source.who for source in had.sources if mine in source.content.things}
        if "user" in whose and "result" not in whose:
            yield claim, alike[0][1]


def _closing_times(text: str, stated: Sequence[Claim], had: Known, at: int) -> Iterator[Contradiction]:
    """Yields the ends of hours (from 9 to 19) for which a result has hours with the same begin and another end."""
    places = {claim.value.start: claim for claim in stated}
    for match in HOURS.finditer(text):
        closes = places.get(match.start(2))
        if closes is None or any(not content.times.isdisjoint(closes.value.keys) for content in had.by(at)):
            continue
        other = _other_end(times(match[1]), had, at)
        if other is not None:
            yield closes, f"results have {other.text} there"


def _other_end(begins: Sequence[float], had: Known, at: int) -> Value | None:
    """Returns the end of a result's hours that begin so."""
    for source in had.sources:
        if source.who != "result" or source.at > at:
            continue
        for fields, _ in source.content.objects:
            hours = [value for value in fields.values() if value.kind == "time"]
            if len(hours) == 2 and hours[0].keys[0] in begins:
                return hours[1]
    return None


def _exchanged(stated: Sequence[Claim], had: Known, at: int) -> Iterator[Contradiction]:
    """Yields the first of each two values of a result that the answer gives to each other's owner: it speaks of one in
    the words of the other (the key, the names of the object), and of the other in the words of the first."""
    places, several = _labelled(stated)
    if not several:
        return
    told: set[float | str] = set()
    for source in had.sources:
        if source.who != "result" or source.at > at:
            continue
        if not any(sum(sign in source.raw for sign in signs) > 1 for signs in several):
            continue
        owned = _owned(source.content.objects[:_MOST_OBJECTS], places)
        for one, other in combinations(owned[:_MOST_FIELDS], 2):
            if _comparable(one, other) and not told & {one.thing, other.thing} and _swapped(one, other, places):
                told |= {one.thing, other.thing}
                there = places[other.thing][0][0].value.text
                yield places[one.thing][0][0], f"results have {there} there ({other.key})"


def _labelled(stated: Sequence[Claim]) -> tuple[Places, list[set[str]]]:
    """Returns claims by their value, with the words before them; and of each kind with several labelled values, how
    results spell these."""
    places: dict[float | str, list[tuple[Claim, set[str]]]] = {}
    labelled: dict[str, set[str]] = {}
    for claim in stated:
        value, label = claim.value, _words(_AFTER_VALUE.split(claim.before)[-1])
        places.setdefault(_thing(value), []).append((claim, label))
        if label:
            sign = str(int(value.number)) if value.kind == "amount" else value.text
            labelled.setdefault(value.kind, set()).add(sign)
    return places, [signs for signs in labelled.values() if len(signs) > 1]


def _owned(objects: Sequence[tuple[Mapping[str, Value], Sequence[str]]], places: Places) -> list[_Owned]:
    """Returns the values of objects that the answer states."""
    owned: list[_Owned] = []
    for row, (fields, names) in enumerate(objects):
        for key, value in fields.items():
            thing = _thing(value)
            if thing in places:
                others = [folded for name in names if squeezed(folded := fold(name)) != thing]
                owned.append(_Owned(row, key, thing, _words(" ".join((key, *others)))))
    return owned


def _comparable(one: _Owned, other: _Owned) -> bool:
    """Returns whether two different values are of one object, or under one key of two."""
    if (one.row == other.row) == (one.key == other.key):
        return False
    if one.thing == other.thing or type(one.thing) is not type(other.thing):
        return False
    return one.row == other.row or "." not in one.key  # a part of an object has an owner of its own


def _swapped(one: _Owned, other: _Owned, places: Places) -> bool:
    mine, its = one.owner - other.owner, other.owner - one.owner
    if not all(its and its <= label and not mine <= label for _, label in places[one.thing]):
        return False
    return all(mine and mine <= label and not its <= label for _, label in places[other.thing])


def _stem(word: str) -> str:
    return word.casefold().removesuffix("s")


def _thing(value: Value) -> float | str:
    return f"day {value.number % 10000}" if value.kind == "date" else value.keys[0]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_CAMEL.sub(" ", text).casefold()))

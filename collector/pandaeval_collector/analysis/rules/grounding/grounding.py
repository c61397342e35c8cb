"""Which of the values that an agent states stand in what it had by then, or follow from it; which are surely made up,
and which are only suspect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding.before import (
    BEFORE,
    CALL,
    RESULT,
    USER,
    Before,
    hidden,
    instructed,
    shows_history,
    shows_results,
)
from pandaeval_collector.analysis.rules.grounding.claims import (
    MOST_ANSWER,
    MOST_CLAIMS,
    Claim,
    answers,
    arguments,
    changing,
    claims,
    is_priced,
    of_answer,
    of_case,
    of_the_rules,
)
from pandaeval_collector.analysis.rules.grounding.evidence import INSTRUCTIONS, Known, evidence, moment
from pandaeval_collector.analysis.rules.grounding.follows import Follows, shown
from pandaeval_collector.analysis.rules.grounding.values import (
    AMOUNT,
    DATE,
    IDENTIFIER,
    NUMBER,
    PERCENTAGE,
    TIME,
    Value,
    fold,
    scan,
    shape,
    squeezed,
)
from pandaeval_otel.model import Kind, Trace

STRICT = frozenset({IDENTIFIER, AMOUNT, DATE})
"""Kinds of which a single made-up value in a sentence that reports fails a run."""
_NOT_TOLD = "the agent's instructions were not captured"
_ROUNDS = 3
_MOST_OWN = 40
_MOST_FIELDS, _MOST_OBJECTS = 60, 200
_COUNTED = re.compile(r"(?<![\w.,:\-/$])(\d{1,4})\s+([^\W\d_]{3,})")
_SPAN_OF_TIME = re.compile(
    r"\b(?:from |von |de |da )(\d{1,2}(?::\d\d)?) ?(?:h )?(?:to|until|till|bis|à|a|al|-) ?(\d{1,2}(?::\d\d)?)"
    r"(?![\w:]| ?h\b)"
)
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_AFTER_VALUE = re.compile(r"\d[\d.,:]*")


@dataclass(slots=True)
class Loose:
    """A claim that is not grounded. ``instead``: what the calls or results say, where the claim contradicts them;
    ``fails``: it is surely made up."""

    claim: Claim
    instead: str = ""
    fails: bool = True


@dataclass(slots=True)
class Grounding:
    """``checked``: how many values were checked, by kind; ``loose``: claims that are not grounded, those that fail
    first. ``open``: claims that cannot be checked because of ``hidden``, not counted as checked. ``notes``: what was
    left out."""

    checked: dict[str, int] = field(default_factory=dict)
    loose: list[Loose] = field(default_factory=list)
    open: list[Claim] = field(default_factory=list)
    hidden: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many values were checked."""
        return sum(self.checked.values())

    def count(self, claim: Claim) -> None:
        """Counts a claim as checked."""
        self.checked[claim.value.kind] = self.checked.get(claim.value.kind, 0) + 1


def grounding(trace: Trace, earlier: Before | None = None) -> Grounding | None:
    """Checks a trace's claims. ``earlier``: what the earlier traces of the session held. Returns ``None`` where nothing
    specific was said. Where nothing was called in the session, an agent answers from its model's knowledge: then only
    values that claim to be of this case count."""
    stated, called = claims(trace)
    if not stated and not called and not changing(trace):
        return None
    had = evidence(trace, earlier.found if earlier is not None else ())
    counted = [*stated, *called]
    found_before = earlier is not None and any(who == RESULT for who, _ in earlier.found)
    if not (looked(trace) or found_before or shows_results(trace)):
        counted = [claim for claim in stated if claim.value.kind in STRICT and of_case(claim)] + called
    found = Grounding(hidden=hidden(trace, earlier))
    contradicted = {id(claim): other for claim, other in _contradictions(trace, stated, had, found)}
    if not counted and not found.loose:
        return None
    if had.cut:
        found.hidden = found.hidden or "there is more than is looked at"
        found.notes.append("long run: not all of it was looked at")
    if len(counted) > MOST_CLAIMS:
        found.notes.append(f"the first {MOST_CLAIMS} values")
        counted = counted[:MOST_CLAIMS]
    follows = Follows(had, trace.start_ns)
    taken = set(map(id, counted))
    _, pending = _settled([*counted, *(each for each in stated if id(each) not in taken)][:MOST_CLAIMS], follows)
    left = {id(claim) for claim in pending}
    repeated: set[int] = set()
    if left and had.own:
        left -= _said_before(pending, had, follows)
        if (earlier is None or earlier.first) and not shows_results(trace):
            said = {(v.kind, v.keys[0]) for text in [*had.own][-_MOST_OWN:] for v in scan(fold(text[:MOST_ANSWER]))}
            repeated = left & {id(each) for each in pending if (each.value.kind, each.value.keys[0]) in said}
    for claim in counted:
        if id(claim) in contradicted:
            found.count(claim)
            found.loose.append(Loose(claim, contradicted[id(claim)]))
        elif id(claim) not in left:
            found.count(claim)
    if follows.exhausted:
        found.hidden = found.hidden or "there is more than is compared"
        found.notes.append("many numbers: not all of them were compared")
    _sort_out(
        [claim for claim in counted if id(claim) in left - contradicted.keys()], repeated, trace, earlier, had, found
    )
    found.loose.sort(key=lambda each: (not each.fails, not each.instead))
    return found


def looked(trace: Trace) -> bool:
    """Whether the run called a tool or read a document."""
    if any(nature(call.name) is not Nature.THINKING for call in trace.tool_calls):
        return True
    return any(span.documents or span.kind is Kind.RETRIEVAL for span in trace.spans)


def states_values(trace: Trace) -> bool:
    """Returns whether the trace states any specific value."""
    return any(claims(trace))


def first_said(trace: Trace, claim: Claim) -> str:
    """Returns the id of the span of the model call that first says a value, else of the one that states it."""
    for span in trace.spans:
        if span.kind is not Kind.LLM or not span.output:
            continue
        if claim.key:
            texts = [str(request.arguments) for message in span.output for request in message.tool_requests]
        else:
            texts = [fold(message.text) for message in span.output]
        if any(claim.value.text in text for text in texts):
            return span.span_id
    return claim.span_id


def _settled(pending: Sequence[Claim], follows: Follows) -> tuple[list[Claim], list[Claim]]:
    """Parts claims in those that stand in the evidence or follow from it, and the others; repeats, as totals may stand
    before their parts."""
    settled = [claim for claim in pending if follows.stands(claim)]
    done = set(map(id, settled))
    left = [claim for claim in pending if id(claim) not in done]
    for _ in range(_ROUNDS):
        wrong = _sums(settled, left)
        known = {claim.value.keys[0] for claim in settled if claim.value.kind == AMOUNT}
        more = [
            claim
            for claim in left
            if id(claim) not in wrong
            and ((claim.value.kind == AMOUNT and claim.value.keys[0] in known) or follows.derived(claim, settled))
        ]
        if not more:
            break
        settled += more
        done = set(map(id, settled))
        left = [claim for claim in left if id(claim) not in done]
    return settled, left


def _sums(settled: list[Claim], left: list[Claim]) -> set[int]:
    """Settles results of sums that the answer shows, where each step holds and its inputs are grounded; returns those
    whose step does not hold."""
    wrong: set[int] = set()
    texts = {id(claim.text): claim.text for claim in left if not claim.key and "=" in claim.text}
    for text in texts.values():
        numbers = [value for value in scan(text) if value.kind in (AMOUNT, NUMBER, PERCENTAGE)]
        of = {claim.value.start: claim for claim in left if claim.text is text}
        open_now = set(of)
        for operands, result, holds in shown(text, numbers):
            claim = of.get(result.start)
            if claim is None or result.start not in open_now:
                continue
            if not holds:
                wrong.add(id(claim))
            elif open_now.isdisjoint(each.start for each in operands):
                open_now.discard(result.start)
                settled.append(claim)
                left.remove(claim)
    return wrong


def _said_before(pending: Sequence[Claim], had: Known, follows: Follows) -> set[int]:
    """Returns which claims repeat what an earlier answer said and was grounded in then."""
    wanted = {(claim.value.kind, claim.value.keys[0]) for claim in pending}
    grounded: set[tuple[str, float | str]] = set()
    for text, at in list(had.own.items())[-_MOST_OWN:]:
        said = list(islice(of_answer(fold(text[:MOST_ANSWER]), at, "own"), MOST_CLAIMS))
        if any((claim.value.kind, claim.value.keys[0]) in wanted for claim in said):
            settled, _ = _settled(said, follows)
            grounded.update((claim.value.kind, claim.value.keys[0]) for claim in settled)
    return {id(claim) for claim in pending if (claim.value.kind, claim.value.keys[0]) in grounded}


def _sort_out(
    left: Sequence[Claim],
    repeated: set[int],
    trace: Trace,
    earlier: Before | None,
    had: Known,
    found: Grounding,
) -> None:
    """Tells which claims are open, which are made up and which are only suspect."""
    missing = found.hidden
    unsure = earlier is None and not shows_history(trace)
    untold = not (instructed(trace) or (earlier is not None and earlier.instructed))
    opened: set[float | str] = set()
    for claim in left:
        value = claim.value
        if missing is not None or (unsure and claim.accepted) or id(claim) in repeated:
            found.hidden = missing or BEFORE
            found.open.append(claim)
        elif untold and (of_the_rules(claim) or _rests_on(value, opened)):
            found.hidden = found.hidden or _NOT_TOLD
            opened.update(value.keys)
            found.open.append(claim)
        else:
            found.count(claim)
            fails = value.kind in STRICT and claim.reports
            fails = fails and (of_case(claim) or is_priced(claim) or _has_alike(value, had))
            found.loose.append(Loose(claim, fails=fails))


def _has_alike(value: Value, had: Known) -> bool:
    """Returns whether the agent had values of this kind, identifiers of this form: then it reports one of them."""
    if value.kind == IDENTIFIER:
        form = shape(str(value.keys[0]))
        return any(source.who != CALL and form in source.content.shapes for source in had.sources)
    return any(source.who in (RESULT, INSTRUCTIONS) and value.kind in source.content.kinds for source in had.sources)


def _rests_on(value: Value, opened: set[float | str]) -> bool:
    """Returns whether an amount is a small multiple of an open one: twice an open price is open."""
    return value.kind == AMOUNT and any(
        abs(value.number - each * times) < 0.005 for each in opened if isinstance(each, float) for times in range(1, 10)
    )


# What the calls or results say otherwise.


@dataclass(slots=True)
class _Used:
    """A value that a changing call was made with."""

    tool: str
    key: str
    text: str
    value: Value | None

    def __str__(self) -> str:
        return f"{self.tool} was called with {self.key} {self.text}"


def _contradictions(trace: Trace, stated: Sequence[Claim], had: Known, found: Grounding) -> Iterator[tuple[Claim, str]]:
    """Yields claims that say otherwise than what was called or found, with that; adds those that are no values by
    themselves (3 passengers) to ``found``."""
    used = _used(trace)
    for claim in stated:
        other = _instead(claim, used, stated, had)
        if other is not None:
            yield claim, str(other)
    for text, end, span_id in answers(trace):
        at = moment(end)
        for value, reason in (*_miscounted(text, used), *_other_hours(text, had, at)):
            claim = Claim(value, at, span_id, text, text, 0)
            found.count(claim)
            found.loose.append(Loose(claim, reason))
        mine = [claim for claim in stated if claim.span_id == span_id][:_MOST_FIELDS]
        yield from _exchanged(mine, had, at)


def _used(trace: Trace) -> list[_Used]:
    used: list[_Used] = []
    for call in changing(trace):
        for key, item in arguments(call.arguments) if not failed(call) else ():
            text = fold(str(item)).strip()
            values = scan(text) if len(text) <= 60 else []
            used.append(_Used(call.name, key, text, values[0] if len(values) == 1 and values[0].text == text else None))
    return used


def _instead(claim: Claim, used: Sequence[_Used], stated: Sequence[Claim], had: Known) -> _Used | None:
    """Returns the value used in place of an identifier or a date that the user named and the answer says; ``None``
    where the answer names what was used, too: it may well explain why."""
    value = claim.value
    if value.kind not in (IDENTIFIER, DATE):
        return None
    same_kind = [each for each in used if each.value is not None and each.value.kind == value.kind]
    alike = [each for each in same_kind if each.value and (value.kind == DATE or _form(each.value) == _form(value))]
    mine = _signs([value])
    if not alike or mine & _signs([each.value for each in same_kind if each.value]):
        return None
    if _signs([each.value for each in alike if each.value]) & _signs([each.value for each in stated]):
        return None
    whose = {
        source.who
        for source in had.sources
        if mine & (source.content.keys | {str(day % 10000) for day in source.content.days})
    }
    return alike[0] if USER in whose and RESULT not in whose else None


def _form(value: Value) -> str:
    return re.sub(r"\d", "9", str(value.keys[0]))


def _signs(values: Sequence[Value]) -> set[str]:
    return {str(key % 10000) if isinstance(key, float) else key for value in values for key in value.keys[:2]}


def _miscounted(text: str, used: Sequence[_Used]) -> Iterator[tuple[Value, str]]:
    """Yields each count of an answer ("3 passengers") that no call's argument of this key has."""
    by_key: dict[str, list[tuple[int, _Used]]] = {}
    for each in used:
        if each.text.isdecimal() and len(each.text) <= 4:
            by_key.setdefault(_stem(each.key.rpartition("_")[2]), []).append((int(each.text), each))
    for match in _COUNTED.finditer(text) if by_key else ():
        counted = by_key.get(_stem(match[2]))
        if counted and int(match[1]) not in {number for number, _ in counted} | {sum(number for number, _ in counted)}:
            yield Value(NUMBER, match[0], match.start(), (float(match[1]),)), str(counted[0][1])


def _stem(word: str) -> str:
    word = word.casefold()
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _other_hours(text: str, had: Known, at: int) -> Iterator[tuple[Value, str]]:
    """Yields the end of a span of hours (from 9 to 19) that begins as one of a result does and ends otherwise."""
    for match in _SPAN_OF_TIME.finditer(text):
        hours = [{_minutes(match[side]), (_minutes(match[side]) + 720) % 1440} for side in (1, 2)]
        for source in had.sources:
            for fields in source.content.objects if source.who == RESULT and source.at <= at else ():
                times = [value for value in fields.values() if value.kind == TIME]
                if len(times) != 2 or times[0].keys[0] not in hours[0] or times[1].keys[0] in hours[1]:
                    continue
                if not any(hours[1] & content.times for content in had.by(at)):
                    yield Value(TIME, match[2], match.start(2), tuple(hours[1])), f"results have {times[1].text} there"
                    return


def _minutes(text: str) -> float:
    hour, _, minute = text.partition(":")
    return float(int(hour) * 60 + int(minute or 0))


def _exchanged(stated: Sequence[Claim], had: Known, at: int) -> Iterator[tuple[Claim, str]]:
    """Yields the first of each two values of a result that the answer gives to each other's owner: it speaks of one in
    the words of the other (the key, the names of the object), and of the other in the words of the first."""
    places: dict[float | str, list[Claim]] = {}
    written: dict[str, set[str]] = {}
    for claim in stated:
        places.setdefault(_thing(claim.value), []).append(claim)
        if _words(_AFTER_VALUE.split(claim.before)[-1]):
            key = claim.value.keys[0]
            sign = str(int(key)) if isinstance(key, float) and claim.value.kind != DATE else claim.value.text[:4]
            written.setdefault(claim.value.kind, set()).add(sign)
    alike = [signs for signs in written.values() if len(signs) > 1]
    told: set[float | str] = set()
    for source in had.sources if alike else ():
        if source.who != RESULT or source.at > at:
            continue
        if not any(sum(sign in source.raw for sign in signs) > 1 for signs in alike):
            continue
        content = source.content
        if len(content.objects) > _MOST_OBJECTS:
            continue
        owned: list[tuple[int, str, float | str, set[str]]] = []
        for row, (fields, names) in enumerate(zip(content.objects, content.names, strict=True)):
            for key, value in fields.items():
                thing = _thing(value)
                if thing in places:
                    others = {name for name in names if squeezed(name) != thing}
                    owned.append((row, key, thing, _words(key) | _words(" ".join(others))))
        for (row, key, one, mine), (other_row, other_key, other, its) in combinations(owned[:_MOST_FIELDS], 2):
            if (row == other_row) == (key == other_key) or one == other or type(one) is not type(other):
                continue
            if told & {one, other} or (row != other_row and "." in key):  # a part of an object has an owner of its own
                continue
            if _called(places[one], its - mine, mine - its) and _called(places[other], mine - its, its - mine):
                told |= {one, other}
                yield places[one][0], f"results have {places[other][0].value.text} there ({other_key})"


def _thing(value: Value) -> float | str:
    key = value.keys[0]
    return f"day {key % 10000}" if value.kind == DATE and isinstance(key, float) else key


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(_CAMEL.sub(" ", text).replace("_", " ").casefold()) if len(word) > 2}


def _called(said: Sequence[Claim], by: set[str], and_not: set[str]) -> bool:
    """Returns whether every place of a value is called by all words ``by``, and by none of the others."""
    labels = [_words(_AFTER_VALUE.split(claim.before)[-1]) for claim in said]
    return bool(by and and_not) and all(by <= label and not and_not <= label for label in labels)

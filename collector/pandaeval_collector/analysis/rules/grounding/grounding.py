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
    Before,
    hidden,
    instructed,
    shows_history,
    shows_results,
)
from pandaeval_collector.analysis.rules.grounding.claims import (
    HOURS,
    MOST_ANSWER,
    MOST_CLAIMS,
    PRICE,
    STRICT,
    Claim,
    answers,
    arguments,
    changing,
    claims,
    of_answer,
)
from pandaeval_collector.analysis.rules.grounding.evidence import Known, evidence, form, moment
from pandaeval_collector.analysis.rules.grounding.follows import Follows
from pandaeval_collector.analysis.rules.grounding.values import Value, fold, squeezed, times, values_of
from pandaeval_collector.analysis.rules.response_recovery import answering_span
from pandaeval_otel.model import Kind, Trace

_Sign = tuple[str, float | str]
_ROUNDS = 3
_MOST_OWN = 40
_MOST_FIELDS, _MOST_OBJECTS = 60, 200
_COUNTED = re.compile(r"(?<![\w.,:\-/$])(\d{1,4})\s+([^\W\d_]{3,})")
_WORD = re.compile(r"[^\W\d_]{3,}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
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

    def check(self, claim: Claim, loose: Loose | None = None) -> None:
        """Counts a claim as checked."""
        self.checked[claim.value.kind] = self.checked.get(claim.value.kind, 0) + 1
        if loose is not None:
            self.loose.append(loose)


def grounding(trace: Trace, earlier: Before | None = None) -> Grounding | None:
    """Checks a trace's claims. ``earlier``: what the earlier traces of the session held. Returns ``None`` where nothing
    specific was said. Where nothing was called in the session, an agent answers from its model's knowledge: then only
    values that claim to be of this case count."""
    stated, called = claims(trace)
    if not (stated or called or changing(trace)):
        return None
    before = earlier.found if earlier is not None else ()
    had = evidence(trace, before)
    counted = [*stated, *called]
    if not (looked(trace) or shows_results(trace) or any(who == "result" for who, _ in before)):
        counted = [claim for claim in stated if claim.value.kind in STRICT and claim.of_case] + called
    found = Grounding(hidden=hidden(trace, earlier))
    contradicted = dict(_contradictions(trace, stated, had, found))
    if not counted and not found.loose:
        return None
    if had.cut:
        found.hidden = found.hidden or "there is more than is looked at"
        found.notes.append("long run: not all of it was looked at")
    if len(counted) > MOST_CLAIMS:
        found.notes.append(f"the first {MOST_CLAIMS} values")
        counted = counted[:MOST_CLAIMS]
    follows = Follows(had, trace.start_ns)
    pending = _unsettled([*dict.fromkeys([*counted, *stated])][:MOST_CLAIMS], follows)[1]
    said, grounded = _said_before(pending, had, follows)
    left = {claim for claim in pending if claim.value.sign not in grounded}
    if (earlier is not None and not earlier.first) or shows_results(trace):
        said = set()
    for claim in counted:
        if claim in contradicted:
            found.check(claim, Loose(claim, contradicted[claim]))
        elif claim not in left:
            found.check(claim)
    if follows.exhausted:
        found.hidden = found.hidden or "there is more than is compared"
        found.notes.append("many numbers: not all of them were compared")
    left_over = [c for c in counted if c in left and c not in contradicted]
    _sort_out(left_over, said, trace, earlier, had, follows, found)
    found.loose.sort(key=lambda loose: (not loose.fails, not loose.instead))
    return found


def looked(trace: Trace) -> bool:
    """Whether the run called a tool or read a document."""
    if any(nature(call.name) is not Nature.THINKING for call in trace.tool_calls):
        return True
    return any(span.documents or span.kind is Kind.RETRIEVAL for span in trace.spans)


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
    return claim.span_id if claim.key else answering_span(trace) or claim.span_id


def _unsettled(pending: Sequence[Claim], follows: Follows) -> tuple[list[Claim], list[Claim]]:
    """Parts claims in those that stand in the evidence or follow from it, and the others; repeats, as totals may stand
    before their parts."""
    settled: list[Claim] = []
    left: list[Claim] = []
    for claim in pending:
        (settled if follows.stands(claim) else left).append(claim)
    for _ in range(_ROUNDS):
        amounts = {claim.value.sign for claim in settled if claim.value.kind == "amount"}
        more = [c for c in left if c.value.sign in amounts or follows.derived(c, settled)]
        if not more:
            break
        settled += more
        left = [claim for claim in left if claim not in more]
    return settled, left


def _said_before(pending: Sequence[Claim], had: Known, follows: Follows) -> tuple[set[_Sign], set[_Sign]]:
    """Returns what earlier answers of the agent said, and which of the claims they said and were grounded in then."""
    wanted = {claim.value.sign for claim in pending}
    said: set[_Sign] = set()
    grounded: set[_Sign] = set()
    for text, at in list(had.own.items())[-_MOST_OWN:] if wanted else ():
        folded = fold(text[:MOST_ANSWER])
        values = {value.sign for value in values_of(folded)}
        said |= values
        if wanted & values:
            answered = list(islice(of_answer(folded, at, "own"), MOST_CLAIMS))
            grounded.update(claim.value.sign for claim in _unsettled(answered, follows)[0])
    return said, grounded


def _sort_out(
    left: Sequence[Claim],
    said: set[_Sign],
    trace: Trace,
    earlier: Before | None,
    had: Known,
    follows: Follows,
    found: Grounding,
) -> None:
    """Tells which claims are open, which are made up and which are only suspect. Open is what was ``said`` before, and
    a small multiple of an open price; made up is what claims to be of this case, or where the agent had values of this
    kind, identifiers of this form: then it reports one of them."""
    missing = found.hidden
    unsure = earlier is None and not shows_history(trace)
    untold = not (instructed(trace) or (earlier is not None and earlier.instructed))
    multiples: set[float] = set()
    for claim in left:
        value = claim.value
        if missing is not None or value.sign in said or (unsure and claim.accepted):
            found.hidden = missing or BEFORE
            found.open.append(claim)
        elif untold and (claim.of_the_rules or (value.kind == "amount" and round(value.number, 2) in multiples)):
            found.hidden = found.hidden or "the agent's instructions were not captured"
            multiples.update(round(value.number * times, 2) for times in range(1, 10))
            found.open.append(claim)
        else:
            whose = ("result", "instructions", "user") if value.kind == "identifier" else ("result", "instructions")
            alike = (source for source in had.sources if source.who in whose and form(value) in source.content.forms)
            fails = value.kind in STRICT and claim.reports and (claim.of_case or any(alike))
            if value.kind == "amount":
                fails = (fails or (claim.reports and claim.reads(PRICE))) and not follows.by_the_answer(claim)
            found.check(claim, Loose(claim, fails=fails))


# What the calls or results say otherwise.


def _contradictions(trace: Trace, stated: Sequence[Claim], had: Known, found: Grounding) -> Iterator[tuple[Claim, str]]:
    """Yields claims that say otherwise than what was called or found, with that; adds those that are no values by
    themselves (3 passengers) to ``found``."""
    used: list[tuple[Value, str]] = []
    counts: dict[str, list[tuple[int, str]]] = {}
    for call in changing(trace):
        for key, item in arguments(call.arguments) if not failed(call) else ():
            text = fold(str(item)).strip()
            reason = f"{call.name} was called with {key} {text}"
            values = values_of(text) if len(text) <= 60 else []
            used += [(value, reason) for value in values if value.text == text]
            if text.isdecimal() and len(text) <= 4:
                counts.setdefault(_stem(key.rpartition("_")[2]), []).append((int(text), reason))
    for claim in stated if used else ():
        instead = _instead(claim.value, used, stated, had) if claim.value.kind in ("identifier", "date") else None
        if instead is not None:
            yield claim, instead
    for text, end, span_id in answers(trace):
        at = moment(end)
        mine = [claim for claim in stated if claim.span_id == span_id]
        places = {claim.value.start: claim for claim in mine}
        for match in HOURS.finditer(text):
            closes = places.get(match.start(2))
            other = _other_end(times(match[1]), closes.value, had, at) if closes is not None else None
            if closes is not None and other is not None:
                yield closes, other
        for match in _COUNTED.finditer(text) if counts else ():  # 3 passengers, where no argument of this key has it
            counted = counts.get(_stem(match[2]), [])
            numbers = [number for number, _ in counted]
            if counted and int(match[1]) not in {*numbers, sum(numbers)}:
                value = Value("number", match[0], match.start(), (float(match[1]),))
                claim = Claim(value, at, span_id, text, text)
                found.check(claim, Loose(claim, counted[0][1]))
        yield from _exchanged(mine[:_MOST_FIELDS], had, at)


def _instead(value: Value, used: Sequence[tuple[Value, str]], stated: Sequence[Claim], had: Known) -> str | None:
    """Says what was used in place of an identifier or a date that the user named and the answer says; ``None`` where
    the answer names what was used, too: it may well explain why."""
    mine, answered = _thing(value), {_thing(claim.value) for claim in stated}
    alike = [(_thing(other), reason) for other, reason in used if form(other) == form(value)]
    if not alike or any(_thing(other) == mine for other, _ in used) or any(thing in answered for thing, _ in alike):
        return None
    whose = {source.who for source in had.sources if mine in source.content.things}
    return alike[0][1] if "user" in whose and "result" not in whose else None


def _stem(word: str) -> str:
    return word.casefold().removesuffix("s")


def _other_end(begins: Sequence[float], closes: Value, had: Known, at: int) -> str | None:
    """Says with what hours of a result end that begin as those of an answer do (from 9 to 19), if it ends otherwise."""
    if any(not content.times.isdisjoint(closes.keys) for content in had.by(at)):
        return None
    for source in had.sources:
        for fields, _ in source.content.objects if source.who == "result" and source.at <= at else ():
            hours = [value for value in fields.values() if value.kind == "time"]
            if len(hours) == 2 and hours[0].keys[0] in begins:
                return f"results have {hours[1].text} there"
    return None


def _exchanged(stated: Sequence[Claim], had: Known, at: int) -> Iterator[tuple[Claim, str]]:
    """Yields the first of each two values of a result that the answer gives to each other's owner: it speaks of one in
    the words of the other (the key, the names of the object), and of the other in the words of the first."""
    places: dict[float | str, list[tuple[Claim, set[str]]]] = {}
    labelled: dict[str, set[str]] = {}
    for claim in stated:
        value, label = claim.value, _words(_AFTER_VALUE.split(claim.before)[-1])
        places.setdefault(_thing(value), []).append((claim, label))
        if label:
            sign = str(int(value.number)) if value.kind == "amount" else value.text
            labelled.setdefault(value.kind, set()).add(sign)
    told: set[float | str] = set()
    for source in had.sources if any(len(signs) > 1 for signs in labelled.values()) else ():
        if source.who != "result" or source.at > at:
            continue
        if not any(sum(sign in source.raw for sign in signs) > 1 for signs in labelled.values()):
            continue
        owned: list[tuple[int, str, float | str, set[str]]] = []
        for row, (fields, names) in enumerate(source.content.objects[:_MOST_OBJECTS]):
            there = [(key, thing) for key, value in fields.items() if (thing := _thing(value)) in places]
            for key, thing in there:
                others = [folded for name in names if squeezed(folded := fold(name)) != thing]
                owned.append((row, key, thing, _words(" ".join((key, *others)))))
        for (row, key, one, mine), (other_row, other_key, other, its) in combinations(owned[:_MOST_FIELDS], 2):
            if (row == other_row) == (key == other_key) or one == other or type(one) is not type(other):
                continue
            if told & {one, other} or (row != other_row and "." in key):  # a part of an object has an owner of its own
                continue
            mine, its = mine - its, its - mine
            of_other = all(its and its <= label and not mine <= label for _, label in places[one])
            if of_other and all(mine and mine <= label and not its <= label for _, label in places[other]):
                told |= {one, other}
                yield places[one][0][0], f"results have {places[other][0][0].value.text} there ({other_key})"


def _thing(value: Value) -> float | str:
    return f"day {value.number % 10000}" if value.kind == "date" else value.keys[0]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_CAMEL.sub(" ", text).casefold()))

"""Which of the specific values that an agent stated stand in what it had by then, or follow from it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding._claims import (
    MOST_CLAIMS,
    Claim,
    answers,
    claims,
    handed_out,
    of_case,
    of_the_rules,
)
from pandaeval_collector.analysis.rules.grounding._contradicts import instead, miscounted, spelled, used
from pandaeval_collector.analysis.rules.grounding._derive import (
    from_dates,
    from_durations,
    from_named,
    from_numbers,
    from_own,
    from_times,
    in_another_unit,
)
from pandaeval_collector.analysis.rules.grounding._exchanged import exchanged
from pandaeval_collector.analysis.rules.grounding._known import Known, verbatim
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import (
    BEFORE,
    INSTRUCTIONS,
    RESULT,
    Before,
    hidden,
    instructed,
    moment,
    shows_history,
    sources,
)
from pandaeval_collector.analysis.rules.grounding._value import (
    AMOUNT,
    DATE,
    DURATION,
    EMAIL,
    IDENTIFIER,
    NAME,
    NUMBER,
    STRICT,
    TIME,
    URL,
    Value,
    fold,
    squeezed,
)
from pandaeval_otel.model import Kind, Trace

_ROUNDS = 3
_URL_SIGNS = re.compile(r"[/?=&#,; ]")
_FORMULA = re.compile(r"[×*=÷/+]\s*\(?\d|\d\)?\s*[×*=÷/+]")
_CONSTANTS = frozenset(
    (each,)
    for each in (
        32.0,
        1.8,
        273.15,
        3.6,
        1.609,
        1.60934,
        0.621371,
        2.54,
        30.48,
        0.3048,
        3.28084,
        2.20462,
        0.453592,
        28.35,
    )
)
"""Constants of conversions between units."""
_ORDINAL = ("st", "nd", "rd", "th")
_YEARS = (1900.0, 2100.0)


@dataclass(slots=True)
class Loose:
    """A claim that is not grounded. ``instead``: what the calls say, where the claim contradicts them."""

    claim: Claim
    instead: str = ""

    @property
    def strict(self) -> bool:
        """Whether this value alone makes an answer ungrounded."""
        return bool(self.instead) or self.claim.value.kind in STRICT


@dataclass(slots=True)
class Grounding:
    """``checked``: how many values were checked, by kind; ``loose``: claims that are not grounded, worst first.
    ``open``: claims that cannot be checked because of ``hidden``, not counted as checked. ``notes``: what was left
    out."""

    checked: dict[str, int] = field(default_factory=dict)
    loose: list[Loose] = field(default_factory=list)
    open: list[Claim] = field(default_factory=list)
    hidden: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.checked.values())


def grounding(trace: Trace, before: Before | None = None) -> Grounding | None:
    """Checks a trace's claims. ``before``: what the earlier traces of the session held. Returns ``None`` where nothing
    specific was said. Without a call or document in the run, an agent answers from its model's knowledge: then only
    values that claim to be of this case count."""
    answered, called = claims(trace)
    if answered and not looked(trace):
        found_before = _found_before(trace, before)
        answered = [replace(claim, aside=not of_case(claim, found_before)) for claim in answered]
        answered.sort(key=lambda claim: claim.aside)
    done = used(trace)
    wrong = [
        (value, other, end, span_id) for text, end, span_id in answers(trace) for value, other in miscounted(text, done)
    ]
    if not called and not wrong and all(claim.aside for claim in answered):
        return None
    given = sources(trace, before.found if before is not None else ())
    known = Known(given.found)
    found = Grounding(hidden=hidden(trace, before))
    if given.cut:
        found.hidden = found.hidden or "there is more than is looked at"
        found.notes.append("long run: not all of it was looked at")
    if len(answered) + len(called) > MOST_CLAIMS:
        found.notes.append(f"the first {MOST_CLAIMS} values")
    settled: list[Claim] = []
    pending: list[Claim] = []
    for claim in (*answered, *called)[:MOST_CLAIMS]:
        other = instead(claim, done, answered, known)
        if other is not None:
            _flag(found, Loose(claim, f"{other.tool} was called with {other.key} {other.text}"))
        elif verbatim(claim.value, known.sources, claim.at) or grounded(claim, known, trace.start_ns):
            _settle(found, settled, claim)
        else:
            pending.append(claim)
    loose = _still_loose(found, settled, pending, known)
    if known.exhausted:
        found.hidden = found.hidden or "there is more than is compared"
        found.notes.append("many numbers: not all of them were compared")
    missing = found.hidden
    unsure = any(claim.accepted for claim in pending) and before is None and not shows_history(trace)
    untold = not (instructed(trace) or (before is not None and before.instructed))
    for claim in loose:
        if claim.aside:
            continue
        if missing is not None or (unsure and claim.accepted):
            found.hidden = missing or BEFORE
            found.open.append(claim)
        elif untold and of_the_rules(claim) and not _told_of(claim, known):
            found.hidden = found.hidden or INSTRUCTIONS
            found.open.append(claim)
        elif claim.value.kind == AMOUNT and _rests_on_open(claim, found.open, settled, known):
            found.open.append(claim)
        else:
            _flag(found, Loose(claim))
    for value, other, end, span_id in wrong:
        claim = Claim(value, moment(end), span_id, value.text)
        _flag(found, Loose(claim, f"{other.tool} was called with {other.key} {other.text}"))
    for text, end, span_id in answers(trace):
        at, stated = moment(end), [each.value for each in answered if each.span_id == span_id]
        for value, unit in in_another_unit(text, known, at):
            _flag(found, Loose(Claim(value, at, span_id, value.text), f"what was found is in {unit}"))
        for value, owner in exchanged(text, stated, known.sources, at):
            _flag(found, Loose(Claim(value, at, span_id, value.text), owner))
    found.loose.sort(key=lambda each: (not each.instead, not each.strict))
    return found


def _told_of(claim: Claim, known: Known) -> bool:
    """Returns whether the agent had such terms from elsewhere: then the stated value has to be among them."""
    if claim.value.kind in (DATE, TIME) or handed_out(claim):
        return False
    return known.speaks_of(claim.value, f"{claim.sentence} {claim.around}", claim.at)


def looked(trace: Trace) -> bool:
    """Whether the run called a tool or read a document."""
    for call in trace.tool_calls:
        if nature(call.name) is not Nature.THINKING:
            return True
    return any(span.documents or span.kind is Kind.RETRIEVAL for span in trace.spans)


def _found_before(trace: Trace, before: Before | None) -> bool:
    """Returns whether a tool or document gave something earlier in the conversation: in an earlier trace of the
    session, or in the history on the spans."""
    if before is not None and any(who == RESULT for who, _ in before.found):
        return True
    return any(message.tool_responses for span in trace.spans for message in span.input or ())


def _rests_on_open(claim: Claim, opened: list[Claim], settled: list[Claim], known: Known) -> bool:
    """Returns whether an amount follows only from an open one: twice an open price is open."""
    amounts = [each for each in opened if each.value.kind == AMOUNT and each.value.readings]
    return bool(amounts) and (_said_before(claim, amounts) or _follows(claim, [*amounts, *settled], known))


def states_values(trace: Trace) -> bool:
    """Returns whether the trace states any specific value."""
    return any(claims(trace))


def grounded(claim: Claim, known: Known, start_ns: int) -> bool:
    """Returns whether the sources have a claim's value in time, or the value follows from theirs."""
    value, at = claim.value, claim.at
    if value.kind in (NAME, EMAIL):
        return known.has_key(value.key, at)
    if value.kind == URL:
        return known.has_key(value.key, at) or _put_together(value.text, known, at, start_ns)
    if value.kind == DATE:
        return from_dates(value, known, at, start_ns, claim.sentence)
    if value.kind == TIME:
        return from_times(value, known, at, claim.sentence)
    if value.kind == DURATION:
        return from_durations(value, known, at)
    if value.kind == IDENTIFIER:
        if known.has_key(value.key, at) or any(known.near(each, 1e-9, at) for each in value.readings):
            return True
        return value.key.isdigit() and known.ends_with(value.key, at)
    if value.kind == NUMBER and (_by_the_way(value, known, at) or _is_of_a_formula(claim)):
        return True
    return from_numbers(value, known, at, claim.sentence)


def _by_the_way(value: Value, known: Known, at: int) -> bool:
    """Returns whether a number is the year of a known date or the next one, a day of one (11th), the end of an
    identifier, or a number that a source spells out."""
    if not value.readings:
        return known.has_key(value.key, at)
    number = value.readings[0]
    if _YEARS[0] <= number <= _YEARS[1] and any(0 <= number - day // 10000 <= 1 for day in known.index.dates):
        return True
    if value.text.endswith(_ORDINAL) and any(day % 100 == number for day in known.index.dates):
        return True
    if value.key.isdigit() and len(value.key) >= 3 and known.ends_with(value.key, at):
        return True
    words = spelled(int(number)) if number == int(number) else ()
    return bool(words) and known.spelled(words, at)


def _is_of_a_formula(claim: Claim) -> bool:
    """Returns whether a number is the constant of a conversion that its sentence spells out: (150 × 1.8) + 32 = 302."""
    return claim.value.readings[:1] in _CONSTANTS and _FORMULA.search(claim.sentence) is not None


def _put_together(url: str, known: Known, at: int, start_ns: int) -> bool:
    """Returns whether a URL has a known host and parts whose digits are known, in any format."""
    host, _, path = fold(unquote(url)).partition("://")[2].partition("/")
    label = max(host.removeprefix("www.").split(".")[:-1], key=len, default=host)
    if not (known.has_key(squeezed(host), at) or known.has_key(squeezed(label), at)):
        return False
    parts = [part for part in _URL_SIGNS.split(path) if any(map(str.isdigit, part))]
    return all(
        known.has_key(squeezed(part), at)
        or all(grounded(Claim(value, at, "", ""), known, start_ns) for value in scan(part))
        for part in parts
    )


def _still_loose(found: Grounding, settled: list[Claim], pending: list[Claim], known: Known) -> list[Claim]:
    """Settles pending amounts that follow from grounded ones of the same paragraph or its neighbours, and returns the
    others; repeats, as totals may stand before their parts."""
    for _ in range(_ROUNDS):
        left: list[Claim] = []
        for claim in pending:
            if claim.value.kind == AMOUNT and (_said_before(claim, settled) or _follows(claim, settled, known)):
                _settle(found, settled, claim)
            else:
                left.append(claim)
        if len(left) == len(pending):
            break
        pending = left
    return pending


def _said_before(claim: Claim, settled: list[Claim]) -> bool:
    return any(reading == each.value.readings[0] for each in settled for reading in claim.value.readings)


def _follows(claim: Claim, settled: list[Claim], known: Known) -> bool:
    near = [each for each in settled if each.span_id == claim.span_id and abs(each.block - claim.block) <= 1]
    near.sort(key=lambda each: each.value.start)
    own = [each.value.readings[0] for each in near]
    return from_own(claim.value, own, known, claim.at) or from_named(
        claim.value, own, known.named(claim.sentence, claim.at)
    )


def _settle(found: Grounding, settled: list[Claim], claim: Claim) -> None:
    _count(found, claim)
    if claim.value.kind == AMOUNT and claim.value.readings:
        settled.append(claim)


def _flag(found: Grounding, loose: Loose) -> None:
    _count(found, loose.claim)
    found.loose.append(loose)


def _count(found: Grounding, claim: Claim) -> None:
    if not claim.aside:
        found.checked[claim.value.kind] = found.checked.get(claim.value.kind, 0) + 1

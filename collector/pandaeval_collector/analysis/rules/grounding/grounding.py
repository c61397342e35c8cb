"""Which of the specific values that an agent stated stand in what it had by then, or follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pandaeval_collector.analysis.rules.grounding._claims import MOST_CLAIMS, Claim, answers, in_answers, in_calls
from pandaeval_collector.analysis.rules.grounding._contradicts import instead, miscounted, used
from pandaeval_collector.analysis.rules.grounding._derive import (
    from_dates,
    from_durations,
    from_numbers,
    from_own,
    from_times,
)
from pandaeval_collector.analysis.rules.grounding._hidden import BEFORE, hidden, shows_history
from pandaeval_collector.analysis.rules.grounding._known import Known
from pandaeval_collector.analysis.rules.grounding._sources import Before, moment, sources
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
)
from pandaeval_collector.analysis.rules.grounding._verbatim import verbatim
from pandaeval_collector.analysis.rules.grounding._words import spelled
from pandaeval_otel.model import Trace

_ROUNDS = 3
_YEARS = (1900.0, 2100.0)


@dataclass(slots=True)
class Loose:
    """A value that is not grounded. ``instead``: what the calls say, where it contradicts them."""

    claim: Claim
    instead: str = ""

    @property
    def strict(self) -> bool:
        """Whether it is one too many by itself."""
        return bool(self.instead) or self.claim.value.kind in STRICT


@dataclass(slots=True)
class Grounding:
    """``checked`` by kind; ``loose``: the values that are not grounded, worst first. ``open``: values of which nobody
    can tell because of ``hidden``, and not among those checked. ``notes``: what was left out."""

    checked: dict[str, int] = field(default_factory=dict)
    loose: list[Loose] = field(default_factory=list)
    open: int = 0
    hidden: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.checked.values())


def grounding(trace: Trace, before: Before | None = None) -> Grounding | None:
    """``before``: what the earlier traces of the session held. ``None`` where nothing specific was said, or there is
    nothing to be grounded in: no call and no document, now or in the conversation before. Such an agent answers from
    what its model knows."""
    answered, called = list(in_answers(trace)), list(in_calls(trace))
    done = used(trace)
    wrong = [
        (value, other, end, span_id) for text, end, span_id in answers(trace) for value, other in miscounted(text, done)
    ]
    if not answered and not called and not wrong:
        return None
    given = sources(trace, before.found if before is not None else ())
    if not given.results and not trace.tool_calls and not (before is not None and before.looked):
        return None
    known = Known(given.found)
    found = Grounding(hidden=hidden(trace, before))
    if given.cut:
        found.hidden = found.hidden or "there is more than is looked at"
        found.notes.append("long run: not all of it was looked at")
    if len(answered) + len(called) > MOST_CLAIMS:
        found.notes.append(f"the first {MOST_CLAIMS} values")
    settled: dict[str, list[float]] = {}
    pending: list[Claim] = []
    for claim in (*answered, *called)[:MOST_CLAIMS]:
        other = instead(claim, done, answered, known)
        if other is not None:
            _count(found, claim.value.kind)
            found.loose.append(Loose(claim, f"{other.tool} was called with {other.key} {other.text}"))
        elif verbatim(claim.value, known.sources, claim.at) or grounded(claim.value, known, claim.at, trace.start_ns):
            _settle(found, settled, claim)
        else:
            pending.append(claim)
    missing = found.hidden
    unsure = any(claim.accepted for claim in pending) and before is None and not shows_history(trace)
    for claim in _still_loose(found, settled, pending, known):
        if missing is not None or (unsure and claim.accepted):
            found.hidden = missing or BEFORE
            found.open += 1
        else:
            _count(found, claim.value.kind)
            found.loose.append(Loose(claim))
    for value, other, end, span_id in wrong:
        _count(found, value.kind)
        claim = Claim(value, moment(end), span_id, value.text)
        found.loose.append(Loose(claim, f"{other.tool} was called with {other.key} {other.text}"))
    found.loose.sort(key=lambda each: (not each.instead, not each.strict))
    return found


def states_values(trace: Trace) -> bool:
    """Whether anything specific is said at all."""
    return any(True for _ in in_answers(trace)) or any(True for _ in in_calls(trace))


def grounded(value: Value, known: Known, at: int, start_ns: int) -> bool:
    """Whether it stands in the sources by then, or follows from them."""
    if value.kind in (NAME, EMAIL):
        return known.has_key(value.key, at)
    if value.kind == URL:
        return known.has_key(value.key, at) or _put_together(value.text, known, at)
    if value.kind == DATE:
        return from_dates(value, known, at, start_ns)
    if value.kind == TIME:
        return from_times(value, known, at)
    if value.kind == DURATION:
        return from_durations(value, known, at)
    if value.kind == IDENTIFIER:
        if known.has_key(value.key, at) or any(known.near(each, 1e-9, at) for each in value.readings):
            return True
        return value.key.isdigit() and known.ends_with(value.key, at)
    if value.kind == NUMBER and _by_the_way(value, known, at):
        return True
    return from_numbers(value, known, at)


def _by_the_way(value: Value, known: Known, at: int) -> bool:
    """A year of a known date, the end of an identifier, or a number that is spelled out."""
    if not value.readings:
        return known.has_key(value.key, at)
    number = value.readings[0]
    if _YEARS[0] <= number <= _YEARS[1] and any(day // 10000 == number for day in known.index.dates):
        return True
    if value.key.isdigit() and len(value.key) >= 3 and known.ends_with(value.key, at):
        return True
    words = spelled(int(number)) if number == int(number) else ()
    return bool(words) and known.spelled(words, at)


def _put_together(url: str, known: Known, at: int) -> bool:
    """An address of a known host whose parts with digits are known."""
    host, _, path = url.partition("://")[2].partition("/")
    parts = [
        part
        for part in path.replace("?", "/").replace("=", "/").replace("&", "/").split("/")
        if any(map(str.isdigit, part))
    ]
    squeezed = [part.replace("-", "").replace("_", "").casefold() for part in parts]
    return known.has_key(host.replace(".", "").replace("-", "").casefold(), at) and all(
        known.has_key(part, at) for part in squeezed
    )


def _still_loose(found: Grounding, settled: dict[str, list[float]], pending: list[Claim], known: Known) -> list[Claim]:
    """What does not follow from grounded amounts of the same answer either; totals may stand before their parts."""
    for _ in range(_ROUNDS):
        left: list[Claim] = []
        for claim in pending:
            own = settled.get(claim.span_id, [])
            before = any(reading in each for each in settled.values() for reading in claim.value.readings)
            if claim.value.kind == AMOUNT and (before or from_own(claim.value, own, known, claim.at)):
                _settle(found, settled, claim)
            else:
                left.append(claim)
        if len(left) == len(pending):
            break
        pending = left
    return pending


def _settle(found: Grounding, settled: dict[str, list[float]], claim: Claim) -> None:
    _count(found, claim.value.kind)
    if claim.value.kind == AMOUNT and claim.value.readings:
        settled.setdefault(claim.span_id, []).append(claim.value.readings[0])


def _count(found: Grounding, kind: str) -> None:
    found.checked[kind] = found.checked.get(kind, 0) + 1

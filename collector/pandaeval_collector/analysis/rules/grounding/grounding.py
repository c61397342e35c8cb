"""Which of the values that an agent states stand in what it had by then, or follow from it; which are surely made up,
and which are only suspect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

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
    MOST_ANSWER,
    MOST_CLAIMS,
    PRICE,
    STRICT,
    Claim,
    changing,
    claims,
    of_answer,
)
from pandaeval_collector.analysis.rules.grounding.contradictions import Used, contradictions, miscounts
from pandaeval_collector.analysis.rules.grounding.evidence import Known, evidence, form
from pandaeval_collector.analysis.rules.grounding.follows import Follows
from pandaeval_collector.analysis.rules.grounding.values import fold, values_of
from pandaeval_collector.analysis.rules.response_recovery import answering_span
from pandaeval_otel.model import Kind, Trace

_Sign = tuple[str, float | str]
_ROUNDS = 3
_MOST_OWN = 40


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

    def leave_open(self, claim: Claim, reason: str) -> None:
        """Adds a claim that cannot be checked."""
        self.hidden = reason
        self.open.append(claim)

    def cut(self, reason: str, note: str) -> None:
        """Notes that not all was compared."""
        self.hidden = self.hidden or reason
        self.notes.append(note)


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
    if not _looked(trace, before):
        counted = [claim for claim in stated if claim.value.kind in STRICT and claim.of_case] + called
    found, used = Grounding(hidden=hidden(trace, earlier)), Used(trace)
    contradicted = contradictions(trace, stated, had, used)
    for claim, instead in miscounts(trace, used):
        found.check(claim, Loose(claim, instead))
    if not counted and not found.loose:
        return None
    if had.cut:
        found.cut("there is more than is looked at", "long run: not all of it was looked at")
    if len(counted) > MOST_CLAIMS:
        found.notes.append(f"the first {MOST_CLAIMS} values")
        counted = counted[:MOST_CLAIMS]
    follows = Follows(had, trace.start_ns)
    pending = _unsettled([*dict.fromkeys([*counted, *stated])][:MOST_CLAIMS], follows)[1]
    said, grounded = _said_before(pending, had, follows)
    left = {claim for claim in pending if claim.value.sign not in grounded}
    if (earlier is not None and not earlier.first) or shows_results(trace):
        said = set()
    left_over: list[Claim] = []
    for claim in counted:
        if claim in contradicted:
            found.check(claim, Loose(claim, contradicted[claim]))
        elif claim in left:
            left_over.append(claim)
        else:
            found.check(claim)
    if follows.exhausted:
        found.cut("there is more than is compared", "many numbers: not all of them were compared")
    _sort_out(left_over, said, trace, earlier, had, follows, found)
    found.loose.sort(key=lambda loose: (not loose.fails, not loose.instead))
    return found


def looked(trace: Trace) -> bool:
    """Whether the run called a tool or read a document."""
    if any(nature(call.name) is not Nature.THINKING for call in trace.tool_calls):
        return True
    return any(span.documents or span.kind is Kind.RETRIEVAL for span in trace.spans)


def _looked(trace: Trace, before: Sequence[tuple[str, Any]]) -> bool:
    """Whether this run, or an earlier one of its session, called a tool or read a document."""
    return looked(trace) or shows_results(trace) or any(who == "result" for who, _ in before)


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
    if not wanted:
        return said, grounded
    for text, at in list(had.own.items())[-_MOST_OWN:]:
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
            found.leave_open(claim, missing or BEFORE)
        elif untold and (claim.of_the_rules or (value.kind == "amount" and round(value.number, 2) in multiples)):
            found.leave_open(claim, found.hidden or "the agent's instructions were not captured")
            multiples.update(round(value.number * times, 2) for times in range(1, 10))
        else:
            found.check(claim, Loose(claim, fails=_is_made_up(claim, had, follows)))


def _is_made_up(claim: Claim, had: Known, follows: Follows) -> bool:
    if not claim.reports:
        return False
    if claim.value.kind != "amount":
        return _is_of_the_case(claim, had)
    return (claim.reads(PRICE) or _is_of_the_case(claim, had)) and not follows.by_the_answer(claim)


def _is_of_the_case(claim: Claim, had: Known) -> bool:
    """Returns whether the claim is about this case, or the agent had values of this kind, identifiers of this form."""
    value = claim.value
    if value.kind not in STRICT or claim.of_case:
        return value.kind in STRICT
    whose = ("result", "instructions", "user") if value.kind == "identifier" else ("result", "instructions")
    return any(form(value) in source.content.forms for source in had.sources if source.who in whose)

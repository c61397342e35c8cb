"""Sorts claimed values: grounded, certainly fabricated, suspect, or for a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding.before import (
    EARLIER_NOT_CAPTURED,
    EarlierContent,
    hidden,
    shows_results,
)
from pandaeval_collector.analysis.rules.grounding.claims import MOST_CLAIMS, Claim, claims
from pandaeval_collector.analysis.rules.grounding.contradictions import TurnComparison
from pandaeval_collector.analysis.rules.grounding.evidence import KnownContent, evidence
from pandaeval_collector.analysis.rules.grounding.values import fold
from pandaeval_collector.analysis.rules.response_recovery import answering_span
from pandaeval_otel.model import Kind, Trace

_TIMESTAMP = 13
"""Digits of a time in milliseconds, or of a sum of such times."""
_DURATIONS = ("hour", "hr", "minute", "min")


@dataclass(slots=True)
class UngroundedClaim:
    """An ungrounded claim. ``known_value``: the value in calls or results, as text. ``fails``: certainly fabricated."""

    claim: Claim
    known_value: str = ""
    fails: bool = True


@dataclass(slots=True)
class Grounding:
    """The checked claims.

    ``checked``: number by kind. ``loose``: ungrounded, failing first. ``open``: uncheckable because of ``hidden``.
    ``notes``: omissions.
    """

    checked: dict[str, int] = field(default_factory=dict)
    loose: list[UngroundedClaim] = field(default_factory=list)
    for_judge: list[Claim] = field(default_factory=list)
    open: list[Claim] = field(default_factory=list)
    hidden: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.checked.values())

    @property
    def failing(self) -> list[UngroundedClaim]:
        return [loose for loose in self.loose if loose.fails]

    def check(self, claim: Claim) -> None:
        self.checked[claim.value.kind] = self.checked.get(claim.value.kind, 0) + 1

    def reject(self, loose: UngroundedClaim) -> None:
        self.check(loose.claim)
        self.loose.append(loose)


def grounding(trace: Trace, earlier: EarlierContent | None = None) -> Grounding | None:
    """Check a trace's claims. ``earlier``: session content. ``None`` without specific values.

    If the session has no tool calls and documents, only case-specific stated values count, and values in reports of
    own work if tools were offered.
    """
    stated, called, numbers = claims(trace)
    if not (stated or called or numbers):
        return None
    before = earlier.found if earlier is not None else ()
    had = evidence(trace, before)
    if not _looked(trace, before):
        stated, numbers = [claim for claim in stated if claim.of_case or (claim.of_own_work and trace.tools)], []
    found = Grounding(hidden=hidden(trace, earlier))
    if had.cut:
        found.hidden = found.hidden or "the run is longer than the part that is checked"
        found.notes.append("long run: only a part of it was checked")
    if len(stated) + len(called) > MOST_CLAIMS:
        found.notes.append(f"only the first {MOST_CLAIMS} values were checked")
    comparison = TurnComparison(trace, had, [*stated, *numbers])
    own_text = _said(trace, earlier, had)
    for claim in [*stated, *called][:MOST_CLAIMS]:
        _check(claim, comparison, had, own_text, found)
    for claim in numbers if found.hidden is None else ():  # durations, and numbers that results contradict
        if not had.has(claim.value):
            _sort_out(claim, comparison, had, found)
        elif claim.value.unit in _DURATIONS:
            found.check(claim)
    found.loose.sort(key=lambda loose: (not loose.fails, not loose.known_value))
    return found if found.total or found.open or found.for_judge else None


def _said(trace: Trace, earlier: EarlierContent | None, had: KnownContent) -> str:
    if (earlier is not None and not earlier.first) or shows_results(trace):
        return ""
    return fold("\n".join(had.own))


def _check(claim: Claim, comparison: TurnComparison, had: KnownContent, own_text: str, found: Grounding) -> None:
    """Count a claim as grounded or contradicted by a call, leave it open, or sort it out."""
    if (replaced := comparison.replaced(claim)) is not None:
        found.reject(UngroundedClaim(claim, replaced.known_value))
    elif had.has(claim.value, bool(claim.key)):
        found.check(claim)
    elif found.hidden is not None or claim.value.text in own_text:
        found.hidden = found.hidden or EARLIER_NOT_CAPTURED
        found.open.append(claim)
    else:
        _sort_out(claim, comparison, had, found)


def _sort_out(claim: Claim, comparison: TurnComparison, had: KnownContent, found: Grounding) -> None:
    contradiction = None if claim.key else comparison.contradiction_of(claim)
    if contradiction is not None:
        found.reject(UngroundedClaim(claim, contradiction.known_value, contradiction.is_sure))
    elif claim.value.kind == "identifier" and _is_made_up(claim, had):
        found.reject(UngroundedClaim(claim))
    else:
        found.for_judge.append(claim)


def _is_made_up(claim: Claim, had: KnownContent) -> bool:
    """Return whether an identifier is fabricated: it is about this case or own work, or the agent had others of its
    form.
    """
    is_timestamp = claim.value.text.isdigit() and len(claim.value.text) == _TIMESTAMP
    if not claim.reports or is_timestamp or claim.is_harmless:
        return False
    return claim.of_case or claim.of_own_work or had.has_form(claim.value)


def had_sources(trace: Trace) -> bool:
    """Return whether the run called a tool or read a document."""
    if any(nature(call.name) is not Nature.THINKING for call in trace.tool_calls):
        return True
    return any(span.documents or span.kind is Kind.RETRIEVAL for span in trace.spans)


def _looked(trace: Trace, before: Sequence[tuple[str, Any]]) -> bool:
    return had_sources(trace) or shows_results(trace) or any(who == "result" for who, _ in before)


def first_mention(trace: Trace, claim: Claim) -> str:
    """Return the span ID of the model call that first mentions a value, otherwise of the call or the answer."""
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

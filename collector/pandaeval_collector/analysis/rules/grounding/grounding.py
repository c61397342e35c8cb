"""Sorts claimed values: grounded, certainly fabricated, suspect, or for a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding.before import BEFORE, Before, hidden, shows_history, shows_results
from pandaeval_collector.analysis.rules.grounding.claims import MOST_CLAIMS, Claim, claims
from pandaeval_collector.analysis.rules.grounding.contradictions import TurnComparison
from pandaeval_collector.analysis.rules.grounding.evidence import Known, evidence
from pandaeval_collector.analysis.rules.grounding.values import fold
from pandaeval_collector.analysis.rules.response_recovery import answering_span
from pandaeval_otel.model import Kind, Trace

_LEAST_NUMBER = 3
"""Characters of a bare number that is put to the judge."""
_TIMESTAMP = 13
"""Digits of a time in milliseconds, or of a sum of such times."""


@dataclass(slots=True)
class Loose:
    """An ungrounded claim. ``instead``: the value in calls or results. ``fails``: certainly fabricated."""

    claim: Claim
    instead: str = ""
    fails: bool = True


@dataclass(slots=True)
class Grounding:
    """The checked claims.

    ``checked``: number by kind. ``loose``: ungrounded, failing first. ``open``: uncheckable because of ``hidden``.
    ``notes``: omissions.
    """

    checked: dict[str, int] = field(default_factory=dict)
    loose: list[Loose] = field(default_factory=list)
    for_judge: list[Claim] = field(default_factory=list)
    open: list[Claim] = field(default_factory=list)
    hidden: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.checked.values())

    @property
    def failing(self) -> list[Loose]:
        return [loose for loose in self.loose if loose.fails]

    def check(self, claim: Claim) -> None:
        self.checked[claim.value.kind] = self.checked.get(claim.value.kind, 0) + 1

    def reject(self, loose: Loose) -> None:
        self.check(loose.claim)
        self.loose.append(loose)


def grounding(trace: Trace, earlier: Before | None = None) -> Grounding | None:
    """Check a trace's claims. ``earlier``: session content. ``None`` without specific values."""
    stated, called, numbers = claims(trace)
    if not (stated or called or numbers):
        return None
    before = earlier.found if earlier is not None else ()
    had = evidence(trace, before)
    if not _looked(trace, before):
        stated, numbers = _of_case(stated), []
    found = Grounding(hidden=hidden(trace, earlier))
    if had.cut:
        found.hidden = found.hidden or "the run is longer than the part that is checked"
        found.notes.append("long run: only a part of it was checked")
    if len(stated) + len(called) > MOST_CLAIMS:
        found.notes.append(f"only the first {MOST_CLAIMS} values were checked")
    comparison = TurnComparison(trace, had, [*stated, *numbers])
    said = _said(trace, earlier, had)
    unsure = earlier is None and not shows_history(trace)
    for claim in [*stated, *called][:MOST_CLAIMS]:
        if had.has(claim.value, claim.at):
            _confirm(claim, comparison, found)
        elif found.hidden is not None or claim.value.text in said or (unsure and claim.accepted):
            found.hidden = found.hidden or BEFORE
            found.open.append(claim)
        else:
            _sort_out(claim, comparison, had, found)
    for claim in numbers:
        _weigh_number(claim, comparison, had, found)
    found.loose.sort(key=lambda loose: (not loose.fails, not loose.instead))
    return found if found.total or found.open or found.for_judge else None


def _of_case(stated: Sequence[Claim]) -> list[Claim]:
    typed = [claim for claim in stated if claim.value.kind in ("identifier", "amount", "date")]
    return [claim for claim in typed if claim.of_case]


def _said(trace: Trace, earlier: Before | None, had: Known) -> str:
    if (earlier is not None and not earlier.first) or shows_results(trace):
        return ""
    return fold("\n".join(had.own))


def _confirm(claim: Claim, comparison: TurnComparison, found: Grounding) -> None:
    replaced = comparison.replaced(claim)
    if replaced is None or claim.key:
        found.check(claim)
    else:
        found.reject(Loose(claim, replaced.instead))


def _sort_out(claim: Claim, comparison: TurnComparison, had: Known, found: Grounding) -> None:
    contradiction = None if claim.key else comparison.against(claim)
    if contradiction is not None:
        found.reject(Loose(claim, contradiction.instead, contradiction.is_sure))
    elif claim.value.kind == "identifier" and _is_made_up(claim, had):
        found.reject(Loose(claim))
    else:
        found.for_judge.append(claim)


def _weigh_number(claim: Claim, comparison: TurnComparison, had: Known, found: Grounding) -> None:
    replaced = comparison.replaced(claim)
    if replaced is not None:
        found.reject(Loose(claim, replaced.instead))
    elif found.hidden is None and len(claim.value.text) >= _LEAST_NUMBER and not had.has(claim.value, claim.at):
        _sort_out(claim, comparison, had, found)


def _is_made_up(claim: Claim, had: Known) -> bool:
    """Return whether an identifier reports on this case, or the agent had others of its form."""
    is_timestamp = claim.value.text.isdigit() and len(claim.value.text) == _TIMESTAMP
    if not claim.reports or is_timestamp or (claim.key and claim.result is None):
        return False
    return claim.of_case or had.has_form(claim.value)


def looked(trace: Trace) -> bool:
    """Return whether the run called a tool or read a document."""
    if any(nature(call.name) is not Nature.THINKING for call in trace.tool_calls):
        return True
    return any(span.documents or span.kind is Kind.RETRIEVAL for span in trace.spans)


def _looked(trace: Trace, before: Sequence[tuple[str, Any]]) -> bool:
    return looked(trace) or shows_results(trace) or any(who == "result" for who, _ in before)


def first_said(trace: Trace, claim: Claim) -> str:
    """Return the span ID of the model call that first mentions a value."""
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

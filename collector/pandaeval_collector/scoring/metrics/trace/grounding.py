"""Do the specific values that the agent states stand in what it had?

Grounded / checked, by code alone, in any language: identifiers, amounts, numbers of two or more digits, dates, times,
e-mail and web addresses and quoted names, of the answer and of the arguments of calls that change something. A value is
grounded if the user, the instructions, the conversation before, an earlier result or a document has it, in any
spelling, or if it follows from values there by format, unit, rounding, time zone, a calculation with dates and times,
or one step of arithmetic from values that belong together: of one object, list or sentence, or the user's; amounts are
added to amounts and multiplied by counts, never added to those (a price less the free seats is no price). An answer
that says otherwise than what was called (3 passengers, booked for 2) or found (61 °C, where results say 61 °F) is not
grounded; nor are two values of a result that the answer gives to each other's owner (tax and subtotal, the prices of
two lines), and amounts in a currency that nobody named where all others are in another. One identifier, amount, date
or time that is not grounded, or one such contradiction, fails whatever the score.

What earlier traces of the same session held counts as well, so spans need not repeat it: of up to 32 of them, each with
what users and agent said, calls, results and documents (24,000 characters of each; where there was more, a value that
is not found is not counted). The first trace of a session is whole if its first call begins with the user's message.

It does not judge whether a grounded value is the right one, nor anything that is said without such values. A run
without a call and a document states what its model knows: there only what claims to be of this case ("your booking …",
and behind the name of something that was looked up earlier in the session: "Departure: 09:00") is checked; examples and
times that the agent proposes are no facts. Where results or the conversation before were not
captured, or results break off, values that are not found there say nothing: they are not counted, `coverage` and the
reason tell how many, and below one half there is no score. So it is with an identifier that a tool took and named in
its result, where the spans hold no conversation before: it exists, and many frameworks keep what was said earlier to
themselves.

Where no instructions were captured in the session, terms that only those can tell (a rate, a limit, a fee or voucher of
so much, today's date) are open, too, unless the agent had such terms from elsewhere (docs/adr/0020); and so is what
follows from them alone (twice an open price).

Held against runs of known outcome (`tests/lab/bench/labelled.py`): of good sessions it fails 4 of the 68 (tau-bench), 1
of the 122 (tau2) and none of the 72 (agentrx) that state values; in the four the agent did make up the id of a card,
the one is told words of a screen that only uncaptured instructions have. It does not separate
success from failure there. Of 44 runs of agents of all fields (mcp-pairs) that version 7 failed, 35 were read as
rightly failed. The 20 of 31 runs of otel-captures that fail are two tests, repeated, whose stand-in model answers with
a random number. Ours.
"""

from __future__ import annotations

from typing import Any

from pandaeval_collector.analysis.rules.grounding.before import MOST_TRACES
from pandaeval_collector.analysis.rules.grounding.grounding import Grounding, grounding, looked, states_values
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import Metric, SessionReads, TraceContext
from pandaeval_otel.model import Trace

_MOST_LISTED = 20
_MOST_NAMED = 5
ENOUGH = 0.5
"""The least share of the values that has to be checked for a score."""


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.forced:
        return Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
    found = grounding(trace, context.before)
    if found is None:
        return None
    everything = found.total + len(found.open)
    strict = any(each.strict for each in found.loose)
    if found.total < ENOUGH * everything and not strict:
        which = ", ".join(f"'{each.value.text}'" for each in found.open[:_MOST_NAMED])
        more = ", …" if len(found.open) > _MOST_NAMED else ""
        reason = (
            f"{found.hidden}: where {_many(len(found.open))} of {everything} came from is not known ({which}{more})"
        )
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, _metadata(found), coverage=found.total / everything)
    return Score(
        1.0 - len(found.loose) / found.total,
        _reason(found),
        _metadata(found),
        label=("contradicts_calls" if found.loose[0].instead else "made_up_value") if strict else None,
        failed=strict,
        coverage=found.total / everything,
        span_ids=tuple(dict.fromkeys(each.claim.span_id for each in found.loose)),
    )


def _unsettled(trace: Trace, finding: Finding | None) -> bool:
    """Returns whether earlier traces of the session may change the finding: a value was not found, there was nothing to
    look in, or the run called nothing."""
    if finding is None:
        return states_values(trace)
    if isinstance(finding, Unscored):
        return finding.why is Why.INSUFFICIENT_EVIDENCE
    if not isinstance(finding, Score):
        return False
    return finding.value < 1.0 or (finding.coverage or 1.0) < 1.0 or not looked(trace)


def _metadata(found: Grounding) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "values_checked": found.total,
        "checked_by_kind": found.checked,
        "not_grounded": [
            {
                "value": each.claim.value.text,
                "kind": each.claim.value.kind,
                "span_id": each.claim.span_id,
                "text": each.claim.around,
                **({"argument": each.claim.key} if each.claim.key else {}),
                **({"but": each.instead} if each.instead else {}),
            }
            for each in found.loose[:_MOST_LISTED]
        ],
    }
    if found.open:
        metadata |= {
            "not_determinable": len(found.open),
            "open": [each.value.text for each in found.open[:_MOST_LISTED]],
            "hidden": found.hidden,
        }
    if found.notes:
        metadata["note"] = "; ".join(found.notes)
    return metadata


def _reason(found: Grounding) -> str:
    unchecked = f"; {_many(len(found.open))} not checked: {found.hidden}" if found.open else ""
    if not found.loose:
        which = "all of them" if found.total > 1 else "which is"
        return f"{_many(found.total)} checked, {which} known or derived from what is known{unchecked}"
    worst = found.loose[0]
    what = f"'{worst.claim.value.text}'" + (f" ({worst.claim.key})" if worst.claim.key else "")
    said = f"but {worst.instead}" if worst.instead else "stands in no result and was not said by the user"
    others = f"; {len(found.loose)} of {_many(found.total)} are not grounded" if found.total > 1 else ""
    return f"{what} {said}{others}{unchecked}"


def _many(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"


METRIC = Metric(
    level="trace",
    name="grounding",
    kind="code",
    version="9",
    threshold=0.7,
    question="Do the specific values that the agent states stand in what it had?",
    needs="tools or documents, and an answer or calls with such values",
    evaluate=_evaluate,
    reads=SessionReads(earlier=MOST_TRACES),
    unsettled=_unsettled,
    unscored=(Why.INCOMPLETE_TRACE, Why.INSUFFICIENT_EVIDENCE),
    signals_failures_only=True,
)

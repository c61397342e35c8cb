"""Do the values in the answer and in calls come from messages or tool results?

The score is 1 minus the share of fabricated values among the checked values. Code finds the values in texts of any
language. The metric checks identifiers, amounts, dates, times, durations, and e-mail and web addresses in the answer.
It also checks identifiers in arguments of calls that change something. Other numbers count only if results contradict
them. The metric looks for each value, in any spelling, in instructions, messages, results and documents of the session.

It *fails* only if a value is certainly fabricated:

- an identifier in an argument, or in a sentence that reports something, if the agent had identifiers of that form
- an identifier in a sentence that reports on the user's case or on the agent's own work
- a contradiction: the calls and documents of the trace contain a single value of that kind and unit for the same owner
  or label, the answer states a different value, and no arithmetic leads to the stated value
- a number or identifier from a result in which a digit is dropped, doubled or swapped

If the results contain several values with that label, the value is only a suspect: `metadata.suspect` lists it, and it
does not lower the score. All other values without a source are in `metadata.for_judge`, and are not counted. The judge
of `correctness` receives them. If the run has no other values, there is no score.

The metric ignores code, names in backticks, options, types and names of files. In examples and proposals, only
identifiers can fail. If the session has no tool calls or documents, the metric checks only values in sentences about
the user's case ("your booking …"). If tools were offered, it also checks values of the agent's own work ("I created
ticket …").

If results or the earlier conversation were not captured, or if results are cut off, values without a source are not
counted. `coverage` is the share of the counted values, and the reason shows the number of the other values. If fewer
than half of the values can be checked and none fails, there is no score (docs/internals/decisions/0020).

It does not judge whether a value with a source is the right value, or sentences without specific values.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pandaeval_collector.analysis.rules.grounding.before import MOST_TRACES
from pandaeval_collector.analysis.rules.grounding.claims import claims
from pandaeval_collector.analysis.rules.grounding.grounding import (
    Grounding,
    UngroundedClaim,
    first_mention,
    grounding,
    had_sources,
)
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import SessionReads, TraceContext, TraceMetric
from pandaeval_otel.model import Trace

_MOST_LISTED = 20
_MOST_NAMED = 5
_NOWHERE = "does not appear in any tool result or user message"
ENOUGH = 0.5
"""Minimum share of checked values for a score."""


def _evaluate(trace: Trace, context: TraceContext) -> Finding | None:
    if trace.forced:
        return Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
    found = grounding(trace, context.before)
    if found is None:
        return None
    everything = found.total + len(found.open)
    failing, metadata = found.failing, _metadata(trace, found)
    if not everything:
        values = _many(len(found.for_judge))
        reason = f"code cannot find the source of {values}; only a judge (correctness) can check this"
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, metadata)
    if found.total < ENOUGH * everything and not failing:
        which = ", ".join(f"'{each.value.text}'" for each in found.open[:_MOST_NAMED])
        more = ", …" if len(found.open) > _MOST_NAMED else ""
        reason = f"{found.hidden}: the source of {len(found.open)} of {_many(everything)} is unknown ({which}{more})"
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, metadata, coverage=found.total / everything)
    label = "contradicts_calls" if failing and failing[0].known_value else "made_up_value"
    return Score(
        1.0 - len(failing) / found.total,
        _reason(found),
        metadata,
        label=label if failing else None,
        failed=bool(failing),
        coverage=found.total / everything,
        span_ids=tuple(dict.fromkeys(first_mention(trace, each.claim) for each in failing)),
    )


def _unsettled(trace: Trace, finding: Finding | None) -> bool:
    """Return whether earlier traces of the session may change the finding: a value has no source, or the run had no
    tool results and documents."""
    if finding is None:
        return any(claims(trace))
    if isinstance(finding, Unscored):
        return finding.why is Why.INSUFFICIENT_EVIDENCE
    if not isinstance(finding, Score):
        return False
    is_whole = finding.value == finding.coverage == 1.0 and not {"suspect", "for_judge"} & finding.metadata.keys()
    return not (is_whole and had_sources(trace))


def _metadata(trace: Trace, found: Grounding) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "values_checked": found.total,
        "checked_by_kind": found.checked,
        "not_grounded": _listed(trace, found.failing),
    }
    suspects = [each for each in found.loose if not each.fails]
    if suspects:
        metadata["suspect"] = _listed(trace, suspects)
    if found.for_judge:
        metadata["for_judge"] = _listed(trace, [UngroundedClaim(claim) for claim in found.for_judge])
    if found.open:
        metadata |= {
            "not_determinable": len(found.open),
            "open": [each.value.text for each in found.open[:_MOST_LISTED]],
            "hidden": found.hidden,
        }
    if found.notes:
        metadata["note"] = "; ".join(found.notes)
    return metadata


def _listed(trace: Trace, loose: Sequence[UngroundedClaim]) -> list[dict[str, Any]]:
    return [
        {
            "value": each.claim.value.text,
            "kind": each.claim.value.kind,
            "span_id": first_mention(trace, each.claim),
            "text": each.claim.around,
            **({"argument": each.claim.key, "call_span_id": each.claim.span_id} if each.claim.key else {}),
            **({"but": each.known_value} if each.known_value else {}),
        }
        for each in loose[:_MOST_LISTED]
    ]


def _reason(found: Grounding) -> str:
    unchecked = f"; {_many(len(found.open))} not checked: {found.hidden}" if found.open else ""
    if not found.loose:
        return f"{_many(found.total)} checked: found in messages or tool results, or derived from them{unchecked}"
    worst = found.loose[0]
    value = f"'{worst.claim.value.text}'" + (f" (argument {worst.claim.key})" if worst.claim.key else "")
    what = f"the answer states {value}, but {worst.known_value}" if worst.known_value else f"{value} {_NOWHERE}"
    others = f"; without a source: {len(found.loose)} of {_many(found.total)}" if found.total > 1 else ""
    suspect = "" if worst.fails else "; only suspicious, so it does not fail"
    return f"{what}{suspect}{others}{unchecked}"


def _many(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"


METRIC = TraceMetric(
    name="grounding",
    kind="code",
    version="20",
    threshold=0.0,
    question="Do the values in the answer and in calls come from messages or tool results?",
    needs="specific values in the answer or in calls",
    evaluate=_evaluate,
    reads=SessionReads(earlier=MOST_TRACES, unsettled=_unsettled),
    unscored=(Why.INCOMPLETE_TRACE, Why.INSUFFICIENT_EVIDENCE),
    signals_failures_only=True,
)

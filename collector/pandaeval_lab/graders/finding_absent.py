"""Does the trial avoid the finding from which the case was made?

The trial fails if a code metric reports a finding that ``absent`` lists, in any trace of the trial. For example, if a
case was made from a ``false_success``, each agent that claims success again fails. It does not judge failures that only
a judge can find; ``failure_absent`` does.

Scale: 1 or 0.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from pandaeval_collector.analysis.rules.grounding.before import EarlierContent, before, pack
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.context import Texts, TraceContext
from pandaeval_lab.cases.graders import rule_of
from pandaeval_lab.cases.model import AbsentFinding
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric

_NO_TEXTS = Texts({}, (), "", None)


def _reported(trial: Trial, context: TrialContext) -> Iterator[tuple[AbsentFinding, Finding | None]]:
    for absent in trial.case.absent:
        metric = rule_of(absent)
        if metric is None:
            continue
        threshold = metric.threshold
        assert not callable(threshold)  # only embedding metrics compute a threshold
        for index, trace in enumerate(trial.traces):
            of_trace = TraceContext(_NO_TEXTS, threshold, end_tokens=context.end_tokens, before=_before(trial, index))
            yield absent, metric.evaluate(trace, of_trace)


def _before(trial: Trial, index: int) -> EarlierContent | None:
    """Return the conversation before a trace of the trial; ``None`` if earlier traces may be missing."""
    if not trial.is_whole_session:
        return None
    earlier = trial.traces[:index]
    return before([*map(pack, earlier)], frozenset(chain.from_iterable(trace.responses for trace in earlier)))


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    reported = [*_reported(trial, context)]
    if not reported:
        return None
    trial.check_calls()
    for absent, finding in reported:
        if isinstance(finding, Score) and finding.label == absent.label:
            return Score(
                0.0,
                f"the finding {absent.label} occurred again: {finding.reason}",
                failed=True,
                span_ids=finding.span_ids,
            )
    silent = next((finding for _, finding in reported if isinstance(finding, Unscored)), None)
    if silent is not None:
        return Unscored(silent.why, silent.reason)
    labels = ", ".join(dict.fromkeys(absent.label for absent, _ in reported))
    return Score(1.0, f"absent: {labels}")


METRIC = trial_metric(
    _evaluate,
    needs="a case with absent",
    unscored=(Why.INCOMPLETE_TRACE, Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    layer="outcome",
    version="3",
)

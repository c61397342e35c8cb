"""Does the answer use the results of the tools?

If the case requires it (``results_must_be_used``), a judge rates how well the answer uses the results of the calls.
``tool_correctness`` includes this score. It does not judge whether the tools or the answer were right.

Scale: 0..1, 1 means that the answer uses every result that matters.
Source: Agentic metric, *Tool Correctness* (utilization).
"""

from __future__ import annotations

from pydantic import Field

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


class Utilization(Verdict):
    """``score``: 0..1, 1 uses all results that matter; ``None``: undecided."""

    reason: Reason
    """The used and the unused results, in one to three sentences."""
    score: float | None = Field(ge=0.0, le=1.0)
    """By the guide. Null if it cannot be decided."""


RUBRIC = Rubric(
    name="result_utilization",
    version="2",
    text="""
Does the agent's answer use the results of its tools?

- Check each result that matters for the user's request: does the answer use its content? The words may differ.
- A statement that no result shows, or that contradicts a result, is no use of it.
- Ignore results that rightly play no part: an empty search, a failed try that a later call replaced.

Guide:
1.0   the answer uses every result that matters
0.75  all except something minor
0.5   about half of them
0.25  hardly any
0.0   none, or it contradicts them
""",
    verdict=Utilization,
)


def _before_asking(trial: Trial, context: TrialContext) -> Finding | None:
    if not trial.case.results_must_be_used or not trial.calls or any(call.has_result for call in trial.calls):
        return None
    return Unscored(Why.NO_CONTENT, "results of the calls were not captured")


async def _ask(trial: Trial, judge: Judge) -> Finding | None:
    if not trial.case.results_must_be_used or not trial.calls:
        return None
    verdict = await judge.ask(RUBRIC, {"answer": trial.answer})
    if verdict.score is None:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {verdict.reason}")
    return Score(verdict.score, verdict.reason)


METRIC = trial_metric(
    _before_asking,
    ask=_ask,
    rubric=RUBRIC,
    threshold=0.5,
    needs="results of calls, and a case with results_must_be_used; a judge",
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    layer="action",
)

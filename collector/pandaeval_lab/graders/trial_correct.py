"""Is the trial correct?

The score is 1 if every grader of the case passes, and 0 if any grader fails. Otherwise, or if the case declares no
grader, there is no score. If the agent raised an exception or took too long in `pandaeval cases run`, the attempt is
not correct. A case declares a grader by its name in ``graders``, or by a field (``expected_tools`` or ``tools_called``:
``tool_correctness``; ``end_state``, ``exit_code``, ``output_format``, ``required_order``, ``forbidden_tools``;
``expected_answer``: ``answer_correctness``; ``interactions``: ``conversation_correctness``; ``absent``:
``finding_absent`` or ``failure_absent``). It does not use other metrics of the trial: a trial with a detour can be
correct.

Scale: 1 or 0.
Source: Agentic metric, *Conversation Correctness*; Agent Evaluation Framework, *Grade Outcomes, Not Paths*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.trial import RUN_ERROR, Trial, TrialContext
from pandaeval_lab.graders._expected import trial_metric


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    declared = [each for each in context.graded if each.gates]
    if trial.case.open:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the case is not complete: fill in {', '.join(trial.case.open)}")
    if trial.spoilt is not None:
        return trial.spoilt
    if error := trial.stated(RUN_ERROR):
        return Score(0.0, f"the run of the agent failed: {error}")
    if not declared:
        return None
    failed = [each for each in declared if each.success is False]
    unknown = [each for each in declared if each.success is None]
    metadata = {
        "graders": [each.name for each in declared],
        "failed": [each.name for each in failed],
        "undetermined": [each.name for each in unknown],
    }
    reason = "; ".join(f"{each.name}: {each.reason}" for each in (failed or unknown)[:5])
    if failed:
        return Score(0.0, reason, metadata)
    if unknown:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, metadata)
    return Score(1.0, f"passed: {', '.join(each.name for each in declared)}", metadata)


METRIC = trial_metric(
    _evaluate, needs="a case that declares a grader", unscored=(Why.INSUFFICIENT_EVIDENCE,), layer="outcome"
)

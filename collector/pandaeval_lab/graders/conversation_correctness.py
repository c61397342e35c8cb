"""Are all interactions of the conversation correct?

An interaction is correct if its answer passes ``answer_correctness`` and its tool calls pass ``tool_correctness``, as
far as it has an expected answer or expected tools. Interactions that the trial did not reach are not correct. If the
outcome depends on a part that was not graded, the interaction is neither correct nor wrong. It does not judge other
qualities.

Scale: 1 or 0; ``metadata.correct_interactions`` counts the correct interactions.
Source: Agentic metric, *Conversation Correctness*.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pandaeval_collector.base.result import TOLERANCE
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.model import Interaction
from pandaeval_lab.cases.trial import Interacted, Trial, TrialContext, interactions
from pandaeval_lab.graders._expected import Weighed, trial_metric, weighed_tools


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected = trial.case.interactions
    if not expected:
        return None
    made: list[Interacted | None] = [*interactions(trial)]
    made += [None] * (len(expected) - len(made))
    tools = [*map(partial(weighed_tools, trial, context), expected, made)]
    answers = _answers(trial, context)
    verdicts = [*map(partial(_correct, context), expected, made, tools, answers)]
    right = sum(verdict is True for verdict in verdicts)
    metadata: dict[str, Any] = {
        "total_interactions": len(expected),
        "correct_interactions": right,
        "tool_correctness_scores": [None if each is None else each.value for each in tools],
        "interactions": verdicts,
    }
    reason = f"{right} of {len(expected)} interactions are correct"
    if False in verdicts:
        return Score(0.0, f"{reason}; interaction {verdicts.index(False) + 1} is the first wrong one", metadata)
    if None in verdicts:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, _untold(expected, tools, answers), metadata)
    return Score(1.0, reason, metadata)


def _untold(expected: Sequence[Interaction], tools: Sequence[Weighed | None], answers: Sequence[float | None]) -> str:
    judged = [answer is not None for each, answer in zip(expected, answers, strict=False) if each.expected_answer]
    if not all(judged):
        return "the answers have no verdict: no judge is configured, or the judge gave no score"
    parts = {name for each in tools if each is not None for name, part in each.parts.items() if part is None}
    names = {"parameters": "arguments of calls were not captured", "utilization": "the use of results was not judged"}
    return "; ".join(text for name, text in names.items() if name in parts)


def _answers(trial: Trial, context: TrialContext) -> list[float | None]:
    found = context.judged.get("answer_correctness")
    scores = list(found.metadata.get("answers", ())) if isinstance(found, Score) else []
    if trial.case.expected_answer is not None:
        scores = scores[1:]
    given = iter(scores)
    return [None if each.expected_answer is None else next(given, None) for each in trial.case.interactions]


def _correct(
    context: TrialContext, expected: Interaction, actual: Interacted | None, tools: Weighed | None, answer: float | None
) -> bool | None:
    if actual is None:
        return False
    parts = [_reached(tools.least, tools.most, context.thresholds["tool_correctness"])] if tools is not None else []
    if expected.expected_answer is not None:
        least, most = (0.0, 1.0) if answer is None else (answer, answer)
        parts.append(_reached(least, most, context.thresholds["answer_correctness"]))
    if False in parts:
        return False
    return None if None in parts else True


def _reached(least: float, most: float, threshold: float) -> bool | None:
    if least >= threshold - TOLERANCE:
        return True
    return False if most < threshold - TOLERANCE else None


METRIC = trial_metric(
    _evaluate, version="2", needs="a case with interactions", unscored=(Why.INSUFFICIENT_EVIDENCE,), layer="outcome"
)

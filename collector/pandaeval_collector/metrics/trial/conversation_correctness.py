"""Are all interactions of the conversation correct?

An interaction is correct if its answer reaches the threshold of ``answer_correctness`` (where one is expected), and its
tools that of ``tool_correctness`` (where tools were used or are expected); the conversation is if all are. Interactions
that the trial did not come to are not correct. It does not judge the conversation as a whole beyond that.

Scale: 1 or 0; ``metadata.correct_interactions`` of ``metadata.total_interactions``.
Source: Agentic metric, *Conversation Correctness*.
"""

from __future__ import annotations

import math
from typing import Any

from pandaeval_collector.cases.interactions import Interacted, interactions
from pandaeval_collector.cases.model import WEIGHTS, Interaction
from pandaeval_collector.cases.tool_parts import tool_parts
from pandaeval_collector.cases.trial import Trial, TrialContext
from pandaeval_collector.metric import Metric
from pandaeval_collector.result import TOLERANCE
from pandaeval_collector.score import Finding, Score, Unscored, Why


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected = trial.case.interactions
    if not expected:
        return None
    made: list[Interacted | None] = [*interactions(trial)]
    made += [None] * (len(expected) - len(made))
    tools = [_tools(trial, each, actual) for each, actual in zip(expected, made, strict=False)]
    answers = _answers(trial, context)
    verdicts = [
        _correct(context, each, actual, tool, answer)
        for each, actual, tool, answer in zip(expected, made, tools, answers, strict=False)
    ]
    right = sum(verdict is True for verdict in verdicts)
    metadata: dict[str, Any] = {
        "total_interactions": len(expected),
        "correct_interactions": right,
        "tool_correctness_scores": tools,
        "interactions": verdicts,
    }
    reason = f"{right} of {len(expected)} interactions are correct"
    if False in verdicts:
        return Score(0.0, f"{reason}; the first that is not is number {verdicts.index(False) + 1}", metadata)
    if None in verdicts:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, "answers were not judged (no judge, or it could not tell)", metadata)
    return Score(1.0, reason, metadata)


def _answers(trial: Trial, context: TrialContext) -> list[float | None]:
    """By interaction, what the judge gave its answer."""
    found = context.judged.get("answer_correctness")
    scores = list(found.metadata.get("answers", ())) if isinstance(found, Score) else []
    if trial.case.expected_answer is not None:
        scores = scores[1:]
    given = iter(scores)
    return [None if each.expected_answer is None else next(given, None) for each in trial.case.interactions]


def _tools(trial: Trial, expected: Interaction, actual: Interacted | None) -> float | None:
    """``None`` where tools were neither used nor expected."""
    wanted = trial.counted_expected(expected.expected_tools)
    calls = actual.calls if actual is not None else ()
    if not wanted and not calls:
        return None
    if wanted is None:
        return None  # nothing is said of tools
    if wanted and not calls:
        return 0.0
    parts = {**tool_parts(wanted, calls, trial.case.tool_sequence_matters), "utilization": 1.0}
    weights: dict[str, float] = dict.fromkeys(WEIGHTS, 0.25) | {**trial.case.tool_weights}
    return min(1.0, math.fsum(weights[name] * parts[name] for name in WEIGHTS))


def _correct(
    context: TrialContext, expected: Interaction, actual: Interacted | None, tool: float | None, answer: float | None
) -> bool | None:
    if actual is None:
        return False
    if tool is not None and tool < context.thresholds["tool_correctness"] - TOLERANCE:
        return False
    if expected.expected_answer is None:
        return True
    return None if answer is None else answer >= context.thresholds["answer_correctness"] - TOLERANCE


METRIC = Metric(
    level="trial",
    name="conversation_correctness",
    kind="code",
    version="1",
    threshold=1.0,
    question="Are all interactions of the conversation correct?",
    needs="a case with interactions",
    evaluate=_evaluate,
    unscored=(Why.INSUFFICIENT_EVIDENCE,),
    layer="outcome",
)

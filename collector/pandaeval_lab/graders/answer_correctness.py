"""Does the answer contain the expected answer of the case?

A judge compares the meaning of the last answer with ``expected_answer``. It treats the statements in the case's
``knowledge`` as true. In a conversation, the judge compares each answer with the expected answer of its interaction,
and the score is the mean. A missing answer counts 0. It does not judge tone or how the agent found the answer.

Scale: 0..1, 1 means that the answer contains the expected answer and does not contradict it.
Source: Agentic metric, *Answer correctness* (threshold 0.7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_lab.cases.trial import Trial, TrialContext, interactions
from pandaeval_lab.graders._expected import trial_metric


class AnswerVerdict(Verdict):
    """``score``: 0..1, 1 is the expected answer; ``None``: undecided."""

    reason: Reason
    """The agreements, gaps and contradictions, in one to three sentences."""
    score: float | None = Field(ge=0.0, le=1.0)
    """By the guide. Null if it cannot be decided."""


RUBRIC = Rubric(
    name="answer_correctness",
    version="2",
    text="""
Is the agent's answer correct? The expected answer is given below, with the answer to compare. The record of the run is
context.

- Compare the content, not the words: another order, language, unit or form of the same fact is right.
- A missing part lowers the score by its weight. A contradiction to the expected answer weighs most.
- Additional content costs nothing, unless it is wrong by the expected answer or the given knowledge.
- The expected answer is right, even if you know otherwise.

Guide:
1.0   everything expected, and no contradiction
0.75  mostly right; something minor is missing
0.5   about half of the expected content
0.25  mostly missing or wrong
0.0   none of the expected content, or the opposite
""",
    verdict=AnswerVerdict,
)


def _wanted(trial: Trial) -> list[tuple[str, str | None]]:
    case = trial.case
    found = [(case.expected_answer, trial.answer)] if case.expected_answer is not None else []
    made = interactions(trial) if case.interactions else []
    for at, each in enumerate(case.interactions):
        if each.expected_answer is not None:
            found.append((each.expected_answer, made[at].answer if at < len(made) else None))
    return found


def _before_asking(trial: Trial, context: TrialContext) -> Finding | None:
    wanted = _wanted(trial)
    if not wanted:
        return None
    silent = [expected for expected, actual in wanted if not says_something(actual)]
    if len(silent) == len(wanted):
        if trial.answer is None and trial.last.error is None and not trial.last.ends_in_tool_call:
            return Unscored(Why.NO_CONTENT, "no answer was captured")
        return Score(0.0, "the trial has no answer", {"answers": [0.0] * len(wanted)})
    return None


async def _ask(trial: Trial, judge: Judge) -> Finding | None:
    wanted = _wanted(trial)
    if not wanted:
        return None
    scores: list[float] = []
    reasons: list[str] = []
    for expected, actual in wanted:
        if not says_something(actual):
            scores.append(0.0)
            reasons.append("the trial has no answer")
            continue
        given: Mapping[str, Any] = {"expected_answer": expected, "answer": actual, "knowledge": [*trial.case.knowledge]}
        verdict = await judge.ask(RUBRIC, given)
        if verdict.score is None:
            return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {verdict.reason}")
        scores.append(verdict.score)
        reasons.append(verdict.reason)
    return Score(math.fsum(scores) / len(scores), " | ".join(reasons), {"answers": scores})


METRIC = trial_metric(
    _before_asking,
    ask=_ask,
    rubric=RUBRIC,
    threshold=0.7,
    needs="an answer, and a case with expected_answer; a judge",
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    layer="outcome",
)

"""Does the answer say what the case expects?

A judge compares the last answer with ``expected_answer`` by meaning, not by words. In a conversation, the judge
compares each answer with the expected answer of its interaction. The judge accepts ``knowledge`` of the case as true.
Of several interactions the score is the mean. It does not judge how the agent found the answer, or the tone of the
answer.

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
    """``score``: 0..1, 1 is what was expected; ``None``: it cannot be told."""

    reason: Reason = Field(description="What agrees, what is missing and what contradicts, in one to three sentences.")
    score: float | None = Field(ge=0.0, le=1.0, description="By the guide. Null if it cannot be told.")


RUBRIC = Rubric(
    name="answer_correctness",
    version="1",
    text="""
Is the agent's answer correct? What is expected is given below, with the answer to be compared with it; the record of
the run is context.

- Compare what both say, not their words: another order, language, unit or form of the same fact is right.
- What is expected and missing takes away in proportion to its weight. What contradicts the expected answer weighs most.
- More than was expected takes nothing away, unless it is wrong by the expected answer or the knowledge given.
- The expected answer is right, also where you know otherwise.

Guide:
1.0   says all that is expected, and nothing that contradicts it
0.75  right on the whole; something minor is missing
0.5   about half of what is expected
0.25  mostly missing or wrong
0.0   says nothing of it, or the opposite
""",
    verdict=AnswerVerdict,
)


def _wanted(trial: Trial) -> list[tuple[str, str | None]]:
    """Returns (expected, actual) answers."""
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
        return Score(0.0, "there is no answer", {"answers": [0.0] * len(wanted)})
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
            reasons.append("there is no answer")
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

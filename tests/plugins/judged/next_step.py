"""Does the user know what to do next?

A judge reads the run and says whether the answer names the user's next step. It does not judge whether that step is
right.

Scale: 0..1, 1 is a step that can be taken as it stands.
Source: a house rule.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pandaeval_collector import Finding, Judge, Metric, Reason, Rubric, Score, TraceContext, Unscored, Verdict, Why
from pandaeval_otel import Trace

SCORES = {"clear": 1.0, "vague": 0.5, "missing": 0.0}


class NextStep(Verdict):
    """``step``: how the answer names what comes next; ``None``: it cannot be told."""

    reason: Reason = Field(description="What the answer says of the next step, in one or two sentences.")
    step: Literal["clear", "vague", "missing"] | None = Field(
        description="By the guide. Null if the record is not sufficient to decide."
    )


RUBRIC = Rubric(
    name="next_step",
    version="1",
    text="""
After reading the answer, does the user know what to do next?

A next step is something that the user does: a page to open, a form to send, somebody to call, a question to answer. An
answer that says that nothing is left to do names one, too. Whether the step is right does not matter here.

Guide:
clear    one step that can be taken as it stands
vague    a step is named, and the user has to find out how, where or when to take it
missing  the answer ends without one
""",
    verdict=NextStep,
)


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    return None if trace.output else Unscored(Why.NO_CONTENT, "there is no answer to read")


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    verdict = await judge.ask(RUBRIC)
    if verdict.step is None:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {verdict.reason}")
    return Score(SCORES[verdict.step], verdict.reason, {"step": verdict.step})


METRIC = Metric(
    level="trace",
    name="next_step",
    kind="llm",
    version="1",
    threshold=0.5,
    question="Does the user know what to do next?",
    needs="answer text; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(RUBRIC,),
    settings={"scores": SCORES},
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

"""Did the agent do what it was asked to do?

A judge first says what the task was and, strictly factual, what came of it; then it compares the two. It does not judge
the way there (tools, steps, plan), nor the tone of the answer.

What code knows limits the judge (``metadata.capped_by``, ``metadata.judged``): a run that ended with an error and gave
no answer scores 0.49 at most, and so does one in which a call that was to change something failed and nothing made up
for it; a run whose last calls all failed scores 0.74 at most.

Scale: 0..1, the share of the task that was accomplished.
Source: PandaProbe, trace metrics, *Task Completion*.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.metric import Metric, TraceContext
from pandaeval_collector.metrics.trace._facts import NOTHING_TOLD, answer_missing, answered, crashed, has_steps, told
from pandaeval_collector.metrics.trace._limits import completion_limit
from pandaeval_collector.metrics.trace._task import TASK_AND_OUTCOME, task_and_outcome
from pandaeval_collector.score import Finding, Unscored, Why
from pandaeval_otel.model import Trace


class Completion(Verdict):
    """``asked`` and ``got``: side by side before the score, so that an answer about something else is held against the
    question. ``verdict``: 0..1, 1 is all of the task."""

    asked: Annotated[str, Field(max_length=200)] = Field(
        description="What the user wanted to know or to have done, in a few words."
    )
    got: Annotated[str, Field(max_length=400)] = Field(
        description="What of that the user got in the end, in a few words; 'nothing' if the answer is about something "
        "else."
    )
    reason: Reason = Field(description="What shows it, in one to three sentences.")
    verdict: float = Field(ge=0.0, le=1.0, description="By the guide.")


RUBRIC = Rubric(
    name="task_completion",
    version="3",
    text="""
How much of the user's task was accomplished? Task and outcome are given below; look up in the record what is in doubt.

- Take each thing that the user asked for by itself: the right thing, amount, place, time and form. It is done if the
  evidence shows it. That the agent says so is not enough where a tool would have had to do it; where the task asks for
  words alone (an explanation, a text), the answer is the outcome.
- A question is answered only by an answer to this very question. One that speaks of something else, puts the user off,
  contradicts what a tool gave back, or that nothing in the record bears out, accomplishes nothing, however sure it
  sounds.
- What the agent rightly could not or may not do is not accomplished, however well it explained why.
- A detour, a slow way or a clumsy tone takes nothing away.

Guide:
1.0          accomplished in full
0.75 - 0.99  accomplished on the whole, something minor is missing
0.5 - 0.74   accomplished in part
0.25 - 0.49  the most important parts are missing
0.0 - 0.24   hardly touched, or something else was done
""",
    verdict=Completion,
)


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    if not told(trace):
        return NOTHING_TOLD
    if crashed(trace):
        return None
    if answer_missing(trace):
        return Unscored(Why.NO_CONTENT, "the last answer was not captured: what became of the task is not known")
    if answered(trace) or has_steps(trace):
        return None
    return Unscored(Why.NO_CONTENT, "neither an answer that says anything nor a step of the agent was captured")


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    found = await task_and_outcome(judge)
    given = {"task": found.task, "outcome": found.outcome}
    verdict = await judge.ask(RUBRIC, given)
    return completion_limit(trace).applied(verdict.verdict, verdict.reason, given)


METRIC = Metric(
    level="trace",
    name="task_completion",
    kind="llm",
    version="3",
    threshold=0.5,
    question="Did the agent do what it was asked to do?",
    needs="an answer or steps, and what the user asked; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(TASK_AND_OUTCOME, RUBRIC),
)

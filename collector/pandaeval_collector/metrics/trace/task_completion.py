"""Did the agent do what it was asked to do?

What the task was and, strictly factual, what came of it is read from the spans: the user's message, what calls gave
back, the answer. A judge is asked for the task only where no single message tells it. Then it compares the two. It does
not judge the way there (tools, steps, plan), nor the tone of the answer.

What code knows limits the judge (``metadata.capped_by``, ``metadata.judged``): a run that ended with an error and gave
no answer scores 0.49 at most, and so does one in which a call that was to change something failed and nothing made up
for it; a run whose last calls all failed scores 0.74 at most.

Scale: 0..1, the share of the task that was accomplished.
Source: PandaProbe, trace metrics, *Task Completion*.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.metric import Metric, TraceContext
from pandaeval_collector.metrics.trace._facts import NOTHING_TOLD, answer_missing, answered, crashed, has_steps, told
from pandaeval_collector.metrics.trace._limits import completion_limit
from pandaeval_collector.metrics.trace._outcome import as_sentences, outcome
from pandaeval_collector.metrics.trace._task import TASK, task_of
from pandaeval_collector.score import Finding, Unscored, Why
from pandaeval_otel.model import Trace


class Completion(Verdict):
    """``answered``, ``taken``: answer against question, and answer against results, each by itself before the score.
    Small models can compare two things, and take the answer's word when they are to quote evidence. ``verdict``: 0..1,
    1 is all of the task."""

    answered: Literal["yes", "no"] = Field(
        description="Does the answer say what the user wanted to know, or that what the user wanted was done?"
    )
    taken: Literal["yes", "no"] = Field(description="Is what the answer says taken from the results?")
    reason: Reason = Field(description="What the user got, what not, and what shows it, in one to three sentences.")
    verdict: float = Field(ge=0.0, le=1.0, description="By the guide.")


RUBRIC = Rubric(
    name="task_completion",
    version="4",
    text="""
How much of the user's task was accomplished? Task, results of the calls and answer are given below, shortened; look up
in the record what is in doubt.

- Take each thing that the user asked for by itself: the right thing, amount, place, time and form.
- An answer about something else, or that puts the user off, accomplishes nothing. What the agent rightly could not or
  may not do is not accomplished, however well it explained why.
- What a tool has to find out or to do is accomplished only if a result bears it out. An answer that is not taken from
  the results is made up and accomplishes nothing, however sure it sounds. Where the task asks for words alone (an
  explanation, a text), the answer is the outcome.
- A detour, a slow way or a clumsy tone takes nothing away.
- "answered" and "taken" both "yes": accomplished. One of them "no": in part at most. An action is answered by telling
  that it was done; "taken" is "yes" where the task asks for words alone.

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
    task, found = await task_of(trace, judge), outcome(trace)
    verdict = await judge.ask(RUBRIC, {"task": task, **found})
    metadata = {"task": task, "outcome": as_sentences(found)}
    return completion_limit(trace).applied(verdict.verdict, verdict.reason, metadata)


METRIC = Metric(
    level="trace",
    name="task_completion",
    kind="llm",
    version="4",
    threshold=0.5,
    question="Did the agent do what it was asked to do?",
    needs="an answer or steps, and what the user asked; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(TASK, RUBRIC),
    unscored=(Why.NO_CONTENT,),
)

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

from pydantic import Field

from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.metric import Metric, TraceContext
from pandaeval_collector.metrics.trace._facts import NOTHING_TOLD, answer_missing, answered, crashed, has_steps, told
from pandaeval_collector.metrics.trace._limits import completion_limit
from pandaeval_collector.metrics.trace._task import task_and_outcome
from pandaeval_collector.score import Finding, Unscored, Why
from pandaeval_otel.model import Trace


class Completion(Verdict):
    """``verdict``: 0..1, 1 is all of the task."""

    reason: Reason = Field(description="Which parts of the task were accomplished and which not, and what shows it.")
    verdict: float = Field(ge=0.0, le=1.0, description="Between 0.0 and 1.0, by the guide.")


RUBRIC = Rubric(
    name="task_completion",
    version="2",
    text="""
How much of the user's task was accomplished? Compare the task with the outcome, both given below, and look up in the
record what is in doubt.

- Every condition of the task counts: the right thing, amount, place, time and form.
- Done is what the evidence shows to be done. That the agent says so is not enough when a tool would have had to do it;
  when the task asks for words alone (an explanation, a text), the answer itself is the outcome.
- An answer that contradicts what a tool gave back is wrong, however sure it sounds.
- A task that the agent rightly could not or may not do is not accomplished, however well it explained why.
- A detour, a slow way or a clumsy tone takes nothing away here.

Guide:
1.0          accomplished in full
0.75 - 0.99  accomplished on the whole, something minor is missing
0.5 - 0.74   accomplished in part
0.25 - 0.49  the most important parts are missing
0.0 - 0.24   the task was hardly touched, or something else was done
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
    version="2",
    threshold=0.5,
    question="Did the agent do what it was asked to do?",
    needs="an answer or steps, and what the user asked; a judge",
    evaluate=_before_asking,
    ask=_ask,
)

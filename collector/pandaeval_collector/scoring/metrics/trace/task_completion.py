"""Did the agent do what it was asked to do?

A judge compares the user's task with its outcome. Code reads both from the spans. If no single message states the task,
a judge extracts it. It does not judge tools, steps, plan or the tone of the answer.

Facts limit the judge's score (``metadata.capped_by``, ``metadata.judged``). The score is at most 0.49 if the run ended
with an error and without an answer, or if a change failed for good. It is at most 0.74 if all calls failed and no
document was found, unless every error reports a missing object. If the agent later reports the failed calls or hands
over, they do not limit the score, and ``metadata.noted`` names them.

Scale: 0..1, the completed share of the task.
Source: PandaProbe, trace metrics, *Task Completion*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pandaeval_collector.base.score import Finding, Unscored, Why
from pandaeval_collector.judge.rubric import Answer, Reason
from pandaeval_collector.scoring.metric import TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import (
    TASK,
    Part,
    crashed,
    has_any_content,
    judged_trace_metric,
    shows_nothing,
)
from pandaeval_collector.scoring.metrics.trace._limits import completion_limit, outcome
from pandaeval_otel.model import Trace

IN_PART, AT_MOST = 0.5, 0.74
"""Lowest and highest score of a partly completed task."""


class Completion(Answer):
    """The partial answers, then a number that must not contradict them.

    ``answered``: answer against question; ``taken``: answer against results.
    """

    reason: Reason
    """The parts that the user got and did not get, with the evidence."""
    answered: Literal["yes", "rightly held back", "no", "unknown"]
    """"yes": the answer gives the wanted information, or reports that the action was done or, if the task allows that,
    was impossible. "rightly held back": the agent asks for information that it needs, or refuses a forbidden action.
    "no": neither"""
    taken: Literal["yes", "no", "unknown"]
    """"yes": the facts of the answer are right by the results, or the task needs only words or general knowledge. "no":
    results contradict a fact, or no tool that could show it was called. "unknown": the results were not captured"""
    verdict: Part


def _check(verdict: Completion, given: Mapping[str, Any]) -> str | None:
    answered, taken, value = verdict.answered, verdict.taken, verdict.verdict
    if answered == "unknown" or (answered == "yes" and taken == "unknown"):
        return None if value is None else "verdict: what it rests on is unknown, so null is wanted"
    if value is None:
        return None if taken == "unknown" else "verdict: it is null, and nothing before it is unknown"
    match answered, taken:
        case ("yes", "yes") | ("rightly held back", _):
            wrong = f"at least {IN_PART}" if value < IN_PART else ""
        case (_, "no"):
            wrong = f"less than {IN_PART}" if value >= IN_PART else ""
        case _:
            wrong = f"at most {AT_MOST}" if value > AT_MOST else ""
    return f'verdict: with "{answered}" and "{taken}" before it, {wrong} is wanted' if wrong else None


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    if has_any_content(trace) and crashed(trace):
        return None
    last = trace.turns[-1].assistant if trace.turns else None
    if has_any_content(trace) and trace.output is None and last is None:
        return Unscored(Why.NO_CONTENT, "the last answer was not captured, so the outcome of the task is unknown")
    return shows_nothing(trace, context)


METRIC = judged_trace_metric(
    "task_completion",
    about=__doc__,
    version="11",
    question="Did the agent do what it was asked to do?",
    needs="an answer or steps, and the question of the user; a judge",
    text="""
How much of the user's task did the agent accomplish?

- Check each request separately: the right thing, amount, place, time and form.
- If a tool has to find out or do something, it is accomplished only if a result shows it. An answer that results
  contradict accomplishes nothing. The same holds for a fact that a tool could show, if the agent called no tool. If the
  task needs only words, or general knowledge that no tool of the agent can show, the answer is the outcome.
- An agent that first asks for needed information, or refuses what its instructions forbid, accomplished at least a
  part. The same holds if it tried and truly reports that it failed, if the task allows that. An agent that asks for
  information that it had or could look up accomplished nothing.
- An answer about something else accomplishes nothing. A detour costs nothing.

If "answered" and "taken" are yes, or "answered" is "rightly held back": at least 0.5. If "answered" is no: at most
0.74. If "taken" is no, unless "rightly held back": below 0.5. If "answered" is unknown, or yes with "taken" unknown:
null.

Example: the user wants order 12 cancelled and to know the refund. The result is "cancelled, refund 20.00". If the
answer reports cancelled and 20.00: yes, yes, 1.0. If it reports cancelled and 25.00: yes, no, 0.4.

Guide:
1.0        in full
0.75-0.99  mostly, something minor is missing
0.5-0.74   in part
0.25-0.49  the most important parts are missing
0.0-0.24   hardly started, or something else was done
""",
    answer=Completion,
    decides="verdict",
    score=lambda value, found, trace, facts: completion_limit(trace).applied(
        value, found.reason, {**facts, "outcome": outcome(trace)}
    ),
    evaluate=_before_asking,
    check=_check,
    extractions=(TASK,),
)

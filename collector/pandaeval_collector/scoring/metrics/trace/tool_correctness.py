"""Did the agent choose the right tools?

A judge compares the tools that were called with those that the agent had and with what the user asked: were they the
right ones, was one called without need, was one missing, was one mistaken for another? It does not judge the arguments
(``argument_correctness``) nor the result (``task_completion``). Calls, definitions and the user's words are read from
the spans; only when no words of the user were captured is the judge asked what the task was.

Scale: 0..1, 1 is exactly the tools that the task needs.
Source: PandaProbe, trace metrics, *Tool Correctness*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.scoring.metric import Metric, TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import (
    BY_THE_GUIDE,
    NOTHING_TOLD,
    TASK,
    Part,
    answered,
    asked_for,
    available_tools,
    told,
    tools_called,
    undetermined,
    user_input,
)
from pandaeval_otel.model import Trace


class ToolSelection(Verdict):
    """``choice``: what is wrong most, before ``score``, which may not contradict it: 0..1, 1 is exactly the right
    tools; ``None``: it cannot be told."""

    reason: Reason = Field(
        description="Which tools were right, needless, missing or mistaken, in one to three sentences."
    )
    choice: Literal["right", "too many", "too few", "mistaken", "unknown"] = Field(
        description="What is wrong most with the choice of tools, or that nothing of weight is."
    )
    score: Part = Field(description=BY_THE_GUIDE)


RIGHT = 0.75


def _check(verdict: ToolSelection, given: Mapping[str, Any]) -> str | None:
    match verdict.choice, verdict.score:
        case "unknown", None:
            return None
        case "unknown", _:
            return 'score: "choice" is "unknown", so null is wanted'
        case _, None:
            return 'score: it is null, and "choice" is not "unknown"'
        case "right", float(score) if score < RIGHT:
            return f'score: "choice" is "right", so at least {RIGHT} is wanted'
        case "mistaken" | "too few", float(score) if score >= 1.0:
            return f'score: "choice" is "{verdict.choice}", so less than 1 is wanted'
    return None


RUBRIC = Rubric(
    name="tool_correctness",
    version="7",
    text="""
Did the agent choose its tools well for what the user wanted? Compare the tools that it called with those that it had:

- Right: do the tools that were called fit the task, and do they suffice?
- Too many: was one called that the task did not need, or the same one again for nothing?
- Too few: was one left aside that the task needed or that would plainly have helped?
- Mistaken: was one called where another one was meant, or one that does not serve what the user wanted?

Only the choice counts here, not the arguments, not whether a call worked, not the answer; another try after a failure
is not one too many, and neither is looking first at what is to be changed. Definitions are not always captured: a tool
that is not listed may have existed. If no tool was called, ask whether the task could be done well without; where the
agent rightly asked back or refused, no tool is missing. Where the facts say that the run may go on elsewhere, judge the
calls that were made: what is still to come is not missing.

"choice" comes before the number: with "right" it is 0.75 at least, with "unknown" null.

Example: asked where a parcel is, it called track_parcel and, needlessly, list_offices: "right", 0.75.

Guide:
1.0   exactly the tools that the task needs
0.75  right on the whole: one needless call, or one small helper left aside
0.5   mixed: about as much right as wrong, or a tool that matters is missing
0.25  mostly wrong, needless or missing
0.0   none of the tools that the task needs
""",
    verdict=ToolSelection,
    check=_check,
)


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    if not told(trace):
        return NOTHING_TOLD
    if trace.tool_calls:
        return None
    if not trace.tools:
        return Assumed("no tool was called, and no definition of one was seen", _metadata(trace, user_input(trace)))
    if not answered(trace) and trace.error is None:
        return Unscored(Why.NO_CONTENT, "no tool was called, and no answer was captured that could do without")
    return None


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    asked = await asked_for(trace, judge)
    verdict = await judge.ask(RUBRIC, {"user_input": asked})
    if verdict.score is None:
        return undetermined(verdict.reason)
    return Score(verdict.score, verdict.reason, _metadata(trace, asked))


def _metadata(trace: Trace, asked: str | None) -> dict[str, object]:
    return {"user_input": asked, "tools_called": tools_called(trace), "available_tools": available_tools(trace)}


METRIC = Metric(
    level="trace",
    name="tool_correctness",
    kind="llm",
    version="7",
    threshold=0.5,
    question="Did the agent choose the right tools?",
    needs="tool calls or tool definitions; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(TASK, RUBRIC),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

"""Did the agent choose the right tools?

A judge compares the called tools with the available tools and the user's request. It checks whether the agent called
the right tools, all necessary tools, and no others. It does not judge the arguments (``argument_correctness``) or the
result (``task_completion``). Without a tool call and a captured tool definition, the score is assumed.

Scale: 0..1, 1 means that the agent called exactly the tools that the task needs.
Source: PandaProbe, trace metrics, *Tool Correctness*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.judge.rubric import Answer, Facts, Reason
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.scoring.metric import TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import (
    NOTHING_CAPTURED,
    USER_INPUT,
    Part,
    available_tools,
    has_answer,
    has_any_content,
    judged_trace_metric,
    tools_called,
    user_input,
)
from pandaeval_otel.model import Trace

_NAME = 100
"""Maximum characters of a tool's name."""
_Names = Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=20)]
RIGHT = 0.75
"""Minimum score if the judge names no tool."""


class ToolSelection(Answer):
    """The faults, then a ``score`` that must not contradict them."""

    missing: _Names
    """Tools that were needed or plainly helpful, and not called"""
    excess: _Names
    """Tools called without need, or again in vain"""
    wrong: _Names
    """Tools called instead of the right tool, or for another purpose than the user's"""
    reason: Reason
    """Why these tools are named, or why none."""
    score: Part


def _called(trace: Trace) -> list[str]:
    return [*dict.fromkeys(one_line(neutral(call.name))[:_NAME] for call in trace.tool_calls)]


def _check(found: ToolSelection, given: Mapping[str, Any]) -> str | None:
    called = given["tools_called"]
    for name in (*found.excess, *found.wrong):
        if name[:_NAME] not in called:
            return "excess, wrong: a tool is named that was not called"
    named = [*found.missing, *found.excess, *found.wrong]
    if found.score is None:
        return "score: it is null, and tools are named" if named else None
    if not named and found.score < RIGHT:
        return f"score: no tool is missing, in excess or wrong, so at least {RIGHT} is wanted"
    if (found.missing or found.wrong) and found.score >= 1.0:
        return "score: tools are missing or wrong, so less than 1 is wanted"
    return None


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    if not has_any_content(trace):
        return NOTHING_CAPTURED
    if trace.tool_calls:
        return None
    if not trace.tools:
        return Assumed("no tool was called, and no tool definition was captured", _metadata(trace, user_input(trace)))
    if not has_answer(trace) and trace.error is None:
        return Unscored(Why.NO_CONTENT, "no tool was called, and no answer was captured")
    return None


def _metadata(trace: Trace, asked: str | None) -> dict[str, object]:
    return {"user_input": asked, "tools_called": tools_called(trace), "available_tools": available_tools(trace)}


def _score(value: float, found: ToolSelection, trace: Trace, facts: Facts) -> Score:
    named = {"missing": found.missing, "excess": found.excess, "wrong": found.wrong}
    metadata = _metadata(trace, user_input(trace) or facts.get("task"))
    return Score(value, found.reason, {**metadata, **{key: names for key, names in named.items() if names}})


METRIC = judged_trace_metric(
    "tool_correctness",
    about=__doc__,
    version="10",
    question="Did the agent choose the right tools?",
    needs="tool calls or tool definitions; a judge",
    text="""
Did the agent choose the right tools for the user's request? Compare the tools that it called, listed below under
"tools_called", with the tools that it had. First name missing, excess and wrong tools. Then give the number.

Judge only the choice, not arguments, success of calls or the answer.

- A retry after a failure and a look before a change are not in excess. If two tools fit, either is right.
- An unlisted tool may have existed.
- If the task needs no tool, or the agent was right to ask back or refuse, no tool is missing.
- If the facts show that the run may continue elsewhere, later calls are not missing.

If no tool is named, the number is at least 0.75. If a tool is missing or wrong, it is below 1. It is null only if no
tool is named.

Example: the user asks where a parcel is. The agent called track_parcel and, without need, list_offices: in excess
list_offices, 0.75. If it called only list_offices: missing track_parcel, wrong list_offices, 0.0.

Guide:
1.0   exactly the tools that the task needs
0.75  one needless call, or one small helper missing
0.5   as much right as wrong, or an important tool is missing
0.25  mostly wrong, needless or missing
0.0   none of the tools that the task needs
""",
    answer=ToolSelection,
    decides="score",
    score=_score,
    evaluate=_before_asking,
    check=_check,
    extractions=(USER_INPUT,),
    given=lambda trace, facts: {**facts, "tools_called": _called(trace)},
)

"""Which step broke the run, as a judge reads it twice?

A judge reads the run and names the first step without which it would have gone right: what the user asked for, a call
by its number, or the answer. It is shown the steps twice, code's candidates first and then last (``trace.blame``), and
a step is named only where both readings agree; else it is unknown. It does not judge whether the run is broken, and
costs two calls a run, so it is asked only where it is enabled by its name.

Scale: 1 where both readings name the same step; no score else.
Source: ours; two readers that agree are right more often than one (AgentProcessBench, arXiv 2603.14465).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from pandaeval_collector.analysis.rules.blame_steps import BlameStep, asked_calls, steps
from pandaeval_collector.analysis.stats.blame_model import shipped
from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.scoring.metric import Metric, TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import NOTHING_TOLD, has_steps, told, undetermined
from pandaeval_otel.model import Trace

_FIRST, _MOST = 3, 60
REQUEST, ANSWER = "request", "answer"


class BrokenStep(Verdict):
    """``step``: the number of one of those listed; ``None``: it cannot be told."""

    reason: Reason = Field(description="What goes wrong in that step, and why the run could not go right after it.")
    step: Annotated[int, Field(ge=1)] | None = Field(
        description="The number of the step in the list. Null if the record does not suffice to tell."
    )


def _check(verdict: BrokenStep, given: Mapping[str, Any]) -> str | None:
    if verdict.step is None or verdict.step in [each["number"] for each in given.get("steps", ())]:
        return None
    return "step: the number of one of those listed under steps"


RUBRIC = Rubric(
    name="judged_blame",
    version="1",
    text="""
Suppose that this run did not give the user what was wanted. Which step broke it?

It is the first step that went wrong and that nothing later made up for: had it been right, the rest of the run as it
stands could have gone right. Later steps that only follow from it are not it.

- request: what the user said was itself wrong, contradictory or not enough to go by, and the agent could not know.
- call N: the wrong tool, wrong arguments, at the wrong time, or without leave that was needed; or its result is wrong.
- answer: the calls are right, and the answer misreads them, makes something up, leaves out what was asked, or claims
  what was not done.

The steps are listed below under steps, each with a number to name it by. The order of that list means nothing; the
record tells what came first.

Example: call 2 books the flight of the 4th where the user said the 14th, and the answer confirms it: it is call 2.
""",
    verdict=BrokenStep,
    check=_check,
)


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    return None if told(trace) and has_steps(trace) else NOTHING_TOLD


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    found = steps(trace, {})
    listed = _listed(trace, found)
    readings = [await judge.ask(RUBRIC, {"steps": each}) for each in (listed, listed[::-1])]
    names = {each["number"]: each["step"] for each in listed}
    one, other = ("none" if reading.step is None else names[reading.step] for reading in readings)
    if one == "none" or one != other:
        return undetermined(f"blame: unknown; two readings name {one} and {other}")
    span_id = _spans(trace, found).get(one, "")
    return Score(
        1.0,
        f"{one}: {readings[0].reason}",
        {"step": {"span_id": span_id, "name": one}, "readings": [reading.reason for reading in readings]},
        span_ids=(span_id,) if span_id else (),
    )


def _listed(trace: Trace, found: Sequence[BlameStep]) -> list[dict[str, Any]]:
    """Returns the steps that may be named: code's candidates, then all others in order, as far as there is room."""
    names = _spans(trace, found)
    chances = dict(
        zip(
            (step.span_id for step in found),
            shipped().probabilities([step.features for step in found]),
            strict=True,
        )
    )
    first = sorted(names, key=lambda name: -chances.get(names[name], 0.0))[:_FIRST]
    order = [*first, *(name for name in names if name not in first)][:_MOST]
    tools = {f"call {at}": {"tool": call.name[:80]} for at, call in enumerate(trace.tool_calls, 1)}
    numbers = {name: number for number, name in enumerate(names, 1)}
    return [{"number": numbers[name], "step": name, **tools.get(name, {})} for name in order]


def _spans(trace: Trace, found: Sequence[BlameStep]) -> dict[str, str]:
    """Returns the span of each step that can be named: for a call, that of the model call that asked for it."""
    asked = asked_calls(trace)
    last = next((step.span_id for step in reversed(found) if step.kind == "llm"), trace.root_span_id)
    calls = {f"call {at}": asked[at - 1] or call.span_id for at, call in enumerate(trace.tool_calls, 1)}
    return {REQUEST: trace.root_span_id, **calls, ANSWER: last}


METRIC = Metric(
    level="trace",
    name="judged_blame",
    kind="llm",
    version="1",
    threshold=0.0,
    question="Which step broke the run, as a judge reads it twice?",
    needs="tool calls; a judge; its name in metrics.enabled",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(RUBRIC,),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    by_name=True,
    explains=True,
)

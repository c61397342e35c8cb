"""What is countable about each step of a run."""

from __future__ import annotations

from dataclasses import replace
from math import log1p

from pandaeval_collector.analysis.rules.response_recovery import steps_of
from pandaeval_collector.analysis.rules.step_features import step_rows
from pandaeval_collector.analysis.stats.problem_features import OF_STEPS, told
from pandaeval_otel.model import Kind, Message, Span, Text
from support.judged import call, trace

MADE = trace(calls=[call(1, span_id="2" * 16), call(2, span_id="3" * 16, error="no such ferry")])


def span(at: int, kind: Kind, said: str = "", agent: str = "desk", parent: str = MADE.root_span_id) -> Span:
    output = (Message("assistant", (Text(said),)),) if said else None
    return Span(MADE.trace_id, str(at) * 16, parent, "x", kind, at, at + 1, output=output, agent_name=agent)


PLAN, FOUND, LOST, ANSWER = (
    span(1, Kind.LLM, "Run ```f(12, 7)```"),
    span(2, Kind.TOOL),
    span(3, Kind.TOOL),
    span(4, Kind.LLM, "Sorry.", agent="writer"),
)
RUN = replace(MADE, spans=(*MADE.spans, PLAN, FOUND, LOST, ANSWER))


def test_steps_are_what_can_break_a_run() -> None:
    helper, silent = span(5, Kind.AGENT), span(6, Kind.AGENT)
    inside = span(7, Kind.RETRIEVAL, parent=helper.span_id)
    others = [span(8, Kind.STEP), span(9, Kind.OTHER), span(0, Kind.EMBEDDING)]
    found = steps_of(replace(RUN, spans=(*RUN.spans, helper, silent, inside, *others)))
    assert [step.span_id[0] for step in found] == list("123467")


def test_what_is_counted() -> None:
    rows = step_rows(RUN, steps_of(RUN))
    assert all({*row} == {*OF_STEPS} for row in rows)
    marks = [
        {name for name in OF_STEPS if row[name] and name not in ("length", "numbers", "late", "from_end")}
        for row in rows
    ]
    assert marks == [
        {"first", "new_agent", "code"},
        {"call", "before_failure"},
        {"call", "after_call", "failed"},
        {"after_call", "new_agent"},
    ]
    assert [row["late"] for row in rows] == [0.0, 1 / 3, 2 / 3, 1.0]
    assert [row["from_end"] for row in rows] == [log1p(3), log1p(2), log1p(1), 0.0]
    assert (rows[0]["numbers"], rows[0]["length"]) == (log1p(2), log1p(len("Run ```f(12, 7)```")))
    assert rows[1]["length"] == log1p(len(str(MADE.tool_calls[0].result)))


def test_each_has_words() -> None:
    assert (told("failed", True), told("failed", False)) == ("it failed", "it did not fail")
    assert len({words for both in OF_STEPS.values() for words in both}) == 2 * len(OF_STEPS)

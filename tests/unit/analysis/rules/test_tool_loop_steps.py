"""Runs with a trace for each model call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pandaeval_collector.analysis.rules.tool_loop import RUNAWAY, runaway_loop
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_otel.model import Message, Trace
from pandaeval_otel.normal.trace import Closing, trace_of
from support.embedder import WordEmbedder
from tests.support.builders import Spans, asks, gives, says, user

ASKED = user("Which ferries go from Kiel to Oslo on 2026-06-02?")
ANSWER = "There are none from Kiel to Oslo on 2026-06-02."


def step(history: Sequence[Message], output: str | Message) -> Trace:
    spans = Spans()
    spans.llm(given=[ASKED, *history], said=output)
    return trace_of(spans(), "digest", Closing())


def run(calls: int, answer: bool = True, at_once: int = 1) -> list[Trace]:
    history: list[Message] = []
    traces = []
    for number in range(0, calls, at_once):
        asked = says(*[asks(id=f"c{number + each}") for each in range(at_once)])
        traces.append(step(history, asked))
        history += [asked, *[gives("no sailings", f"c{number + each}") for each in range(at_once)]]
    return [*traces, step(history, ANSWER)] if answer else traces


def said_of(traces: Sequence[Trace]) -> list[tuple[int, str, bool | None]]:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings())
    texts = evaluator.embed(traces)
    found = []
    for number, trace in enumerate(traces):
        found += [(number, each.metric, each.success) for each in evaluator.trace(trace, texts)]
    return found


def test_steps_are_not_scored_and_the_last_trace_holds_all_calls() -> None:
    *steps, last = run(2)
    assert [trace.is_step for trace in (*steps, last)] == [True, True, False]
    assert [(call.result, call.id) for call in last.tool_calls] == [("no sailings", "c0"), ("no sailings", "c1")]
    assert "tool calls of earlier traces, read from the message history: 2" in last.notes
    assert not said_of(steps)
    assert {metric for _, metric, _ in said_of([last])} >= {"response", "tool_loop"}


def test_a_loop_is_reported_once_at_the_end_of_the_run() -> None:
    traces = run(5)
    assert [each for each in said_of(traces) if each[2] is False and each[1] == "tool_loop"] == [
        (5, "tool_loop", False)
    ]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_a_run_that_does_not_end_is_reported_once(at_once: int) -> None:
    found = [runaway_loop(trace) for trace in run(30, answer=False, at_once=at_once)]
    [reported] = [each for each in found if each is not None]
    assert RUNAWAY <= reported.wasted_calls < RUNAWAY + at_once
    assert reported.looping


def test_long_runs_without_repetition_are_not_running_away() -> None:
    history: list[Message] = []
    for number in range(20):
        asked = says(asks(arguments={"page": number}, id=f"c{number}"))
        assert runaway_loop(step(history, asked)) is None
        history += [asked, gives(f"sailing {number * 37}", f"c{number}")]


def test_equal_calls_with_different_ids_stay_separate() -> None:
    first = says(asks(id="c1"))
    again = step([first, gives("no sailings", "c1")], says(asks(id="c2")))
    assert [(call.id, call.has_result) for call in again.tool_calls] == [("c1", True), ("c2", False)]


def test_a_trace_with_an_agent_span_or_without_tool_calls_is_no_step() -> None:
    spans = Spans()
    agent = spans.agent()
    spans.llm(agent, [ASKED], says(asks()))
    assert not trace_of(spans(), "digest", Closing()).is_step
    assert not step([], ANSWER).is_step


def test_an_incomplete_trace_is_a_step_only_if_it_is_a_fragment() -> None:
    first, _ = run(1)
    assert replace(first, fragment=True, complete=False).is_step
    assert not replace(first, complete=False).is_step

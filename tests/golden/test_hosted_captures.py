"""Hosted tool calls, with their answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.judge.run_facts import SAID, said_on_the_way, thoughts
from pandaeval_collector.scoring.metrics.trace.grounding import METRIC as GROUNDING
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_otel.model import ToolCall, Trace
from tests.golden.test_grounding_captures import CONTEXT, traces
from tests.lab.rig.scenarios import HOSTED
from tests.support.script import Exchange, Reply, Served

FOLDER = Path(__file__).parent / "hosted"
CAPTURES = sorted(FOLDER.glob("*/*.otlp.jsonl"))
NO_PAGES = {"hosted_openai_agents_openinference", "hosted_openai_agents_genai", "hosted_pydantic_ai"}
"""OpenAI's searches contain the query only."""
NO_RESULTS = {"hosted_vercel_ai"}
"""Sets with calls but without results."""


def read(path: Path) -> list[tuple[Exchange, Trace]]:
    """Return exchanges with their traces."""
    found = sorted(traces(path), key=lambda trace: trace.start_ns)
    exchanges = HOSTED[path.name.partition(".")[0]].dialogue.exchanges
    return list(zip(exchanges, found, strict=True))


def replies(exchange: Exchange) -> list[Reply]:
    return [reply for reply in exchange.replies if isinstance(reply, Reply)]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name.partition('.')[0]}")
def test_answers_and_hosted_tool_calls_are_read(path: Path) -> None:
    for exchange, trace in read(path):
        assert (trace.input, trace.output) == (exchange.user, replies(exchange)[-1].text)
        made = [each for reply in replies(exchange) for each in (*reply.served, *reply.calls)]
        assert len(trace.tool_calls) == len(made)
        for call, due in zip(trace.tool_calls, made, strict=True):
            if isinstance(due, Served):
                _check(path.parent.name, call, due)
            else:
                assert (call.name, call.arguments) == (due.name, due.arguments)
                assert call.has_result


def _check(name: str, call: ToolCall, due: Served) -> None:
    if due.kind == "mcp":
        assert "find_race" in f"{call.name} {call.arguments}"
    if name in NO_RESULTS or (due.kind == "search" and (name in NO_PAGES or "langchain" in name)):
        assert not call.has_result
        return
    call_text = json.dumps([call.name, call.arguments])
    assert all(json.dumps(value) in call_text for value in due.arguments.values())
    assert call.has_result
    assert call.error == (due.error or None)
    assert (due.error or due.result.strip()) in json.dumps(call.result)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name.partition('.')[0]}")
def test_only_runs_with_a_failed_hosted_call_fail_and_only_in_response(path: Path) -> None:
    for exchange, trace in read(path):
        ended, grounded = response(trace), GROUNDING.evaluate(trace, CONTEXT)
        assert isinstance(ended, Score)
        fails = any(each.error for reply in replies(exchange) for each in reply.served) and "vercel" not in str(path)
        assert (ended.value, ended.label) == ((0.4, "unrecovered_tool_error") if fails else (1.0, None))
        assert not (isinstance(grounded, Score) and grounded.failed)


@pytest.mark.parametrize(
    "path",
    [path for path in CAPTURES if path.name.startswith("search_and_code") and path.parent.name not in NO_RESULTS],
    ids=lambda path: path.parent.name,
)
def test_text_between_hosted_calls_is_placed_between_them(path: Path) -> None:
    exchange, trace = read(path)[-1]
    words = replies(exchange)[0].text
    assert said_on_the_way(trace) == (words,)
    text_ns = next(time for time, what, text in thoughts(trace) if (what, text) == (SAID, words))
    search, catalogue = trace.tool_calls
    assert search.start_ns < text_ns <= catalogue.start_ns
    for _, earlier in read(path)[:-1]:
        assert said_on_the_way(earlier) == ()


def test_grounding_is_unscored_if_the_search_pages_are_encrypted() -> None:
    """Anthropic encrypts search pages."""
    trace = read(FOLDER / "hosted_anthropic_genai" / "search_streamed.otlp.jsonl")[0][1]
    answer = "The boat Aker won the ferry race on 15 July 2026."
    answered = replace(trace, output=answer, turns=(replace(trace.turns[0], assistant=answer),))
    finding = GROUNDING.evaluate(answered, CONTEXT)
    assert isinstance(finding, Unscored)
    assert "captured only in part" in finding.reason

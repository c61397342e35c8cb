"""Monocle."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Captured, Kind, Span, Usage
from pandaeval_otel.model.raw import RawEvent
from tests.unit.dialects.composed import ASK, CALL, SAID, event, seen, texts

BASE = {"monocle_apptrace.version": "0.8", "scope.agentic.session": "talk-1"}


def read(kind: str, events: list[RawEvent], **attributes: Any) -> Span:
    return seen({**BASE, "span.type": kind, **attributes}, events=events)


def test_model_call() -> None:
    found = read(
        "inference.framework",
        [
            event("data.input", input=[json.dumps({"system": "Be brief."}), json.dumps({"human": ASK.text})]),
            event("data.output", response=json.dumps({"ai": {"name": CALL.name, "args": CALL.arguments, "id": "c9"}})),
            event("metadata", prompt_tokens=7, completion_tokens=2),
        ],
        **{"entity.1.type": "inference.openai", "entity.2.type": "model.llm.m-1", "entity.2.name": "m-1"},
    )
    assert (found.kind, found.request_model, found.usage) == (Kind.LLM, "m-1", Usage(7, 2))
    assert texts(found.input) == [("system", "Be brief."), ("user", ASK.text)]
    assert found.output is not None
    assert found.output[0].tool_requests == (CALL,)
    assert found.session_ids == ((4, "talk-1"),)


def test_run_and_tool() -> None:
    said = [event("data.input", input=[ASK.text]), event("data.output", response=SAID)]
    found = read("agentic.invocation", said, **{"entity.1.type": "agent.langgraph", "entity.1.name": "desk"})
    assert (found.kind, found.agent_name) == (Kind.AGENT, "desk")
    assert texts(found.input) + texts(found.output) == [("user", ASK.text), ("assistant", SAID)]
    called = [event("data.input", input="{'city': 'Oslo'}"), event("data.output", response='{"temp_c": 4}')]
    found = read("agentic.tool.invocation", called, **{"entity.1.type": "tool.langgraph", "entity.1.name": "look"})
    assert (found.kind, found.tool_name) == (Kind.TOOL, "look")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_model_api_spans_are_steps_and_foreign_spans_have_kind_other() -> None:
    assert read("inference.modelapi", []).kind is Kind.STEP
    assert seen({"span.type": "workflow"}).kind is Kind.OTHER
    assert read("inference", [event("data.output", response=SAID)]).output is not None

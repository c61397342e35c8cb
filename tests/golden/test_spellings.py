"""Captures in older GenAI attribute names have the same facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.trace import build_trace
from tests.golden.conformance_capture import Recorded, read
from tests.golden.conformance_truth import OWN, SHARED

RENAMED = {
    "gen_ai.system": "gen_ai.provider.name",
    "gen_ai.usage.prompt_tokens": "gen_ai.usage.input_tokens",
    "gen_ai.usage.completion_tokens": "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "gen_ai.usage.cache_write.input_tokens",
}
"""Old keys with their current names."""
MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
STRUCTURES = (*MESSAGES, "gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.retrieval.documents")
WORKFLOW, AGENT, OPERATION = "gen_ai.workflow.name", "gen_ai.agent.name", "gen_ai.operation.name"

Rewrite = Callable[[RawSpan], RawSpan]


def today(span: RawSpan) -> RawSpan:
    """Return structured content and current names."""
    attributes = {RENAMED.get(key, key): value for key, value in span.attributes.items()}
    for key in STRUCTURES:
        if isinstance(attributes.get(key), str):
            attributes[key] = _structure(attributes[key])
    for key in MESSAGES:
        attributes |= {key: _each(attributes[key], _without_finish_reason)} if key in attributes else {}
    name = span.name
    if attributes.get(OPERATION) == "invoke_workflow":
        attributes[OPERATION] = "invoke_agent"
        name = name.replace("invoke_workflow", "invoke_agent")
        if WORKFLOW in attributes:
            attributes[AGENT] = attributes.pop(WORKFLOW)
    return replace(span, name=name, attributes=attributes)


def earlier(span: RawSpan) -> RawSpan:
    """Return JSON text content and older names."""
    old = {new: old for old, new in RENAMED.items()}
    attributes = {old.get(key, key): value for key, value in span.attributes.items()}
    for key in MESSAGES:
        attributes |= {key: _each(_structure(attributes[key]), _with_result)} if key in attributes else {}
    for key in STRUCTURES:
        if isinstance(attributes.get(key), (list, dict)):
            attributes[key] = json.dumps(attributes[key], ensure_ascii=False)
    return replace(span, attributes=attributes)


def _structure(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _each(messages: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(messages, list):
        return messages
    return [change(message) if isinstance(message, dict) else message for message in messages]


def _without_finish_reason(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "finish_reason"}


def _with_result(message: dict[str, Any]) -> dict[str, Any]:
    parts = message.get("parts")
    if not isinstance(parts, list):
        return message
    return {**message, "parts": [_renamed(part) if isinstance(part, dict) else part for part in parts]}


def _renamed(part: dict[str, Any]) -> dict[str, Any]:
    is_answer = part.get("type") == "tool_call_response"
    return {"result" if is_answer and key == "response" else key: value for key, value in part.items()}


def facts(trace: Trace) -> Mapping[str, Any]:
    return {
        "turns": [(turn.user, turn.assistant) for turn in trace.turns],
        "calls": [(call.name, call.id, call.arguments, call.result, call.error) for call in trace.tool_calls],
        "tools": trace.tools,
        "models": (trace.models, trace.llm_calls),
        "tokens": trace.usage,
        "session": (trace.session_id, trace.user_id),
        "error": trace.error,
        "reasoning": trace.reasoning,
        "pending": trace.ends_in_tool_call,
    }


@cache
def captured(path: Path) -> tuple[Recorded, ...]:
    return tuple(one for one in read(path) if _follows_conventions(one.evidence))


def _follows_conventions(evidence: Evidence) -> bool:
    return any(key.startswith("gen_ai.") for span in evidence.spans for key in span.attributes)


def rewritten(evidence: Evidence, rewrite: Rewrite) -> Trace:
    trace = build_trace(replace(evidence, spans=tuple(rewrite(span) for span in evidence.spans)))
    assert trace is not None
    return trace


OWN_SETS = sorted(path.name for path in OWN.iterdir() if path.is_dir())
ALL_FILES = sorted([*OWN.glob("*/*.otlp.jsonl"), *SHARED.parent.glob("captures*/*/*.otlp.jsonl")])
FEW = 3
"""Captures per set in the fast run."""


@pytest.mark.parametrize("rewrite", [today, earlier])
@pytest.mark.parametrize("name", OWN_SETS)
def test_older_and_current_attribute_names_give_the_same_facts(name: str, rewrite: Rewrite) -> None:
    for path in _few(name):
        _compare(path, rewrite)


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", [today, earlier])
def test_older_and_current_attribute_names_give_the_same_facts_in_all_captures(rewrite: Rewrite) -> None:
    for path in ALL_FILES:
        _compare(path, rewrite)


def _few(name: str) -> list[Path]:
    return sorted((OWN / name).glob("*.otlp.jsonl"))[:FEW]


def _compare(path: Path, rewrite: Rewrite) -> None:
    for one in captured(path):
        original, again = facts(one.trace), facts(rewritten(one.evidence, rewrite))
        differing = {fact: (original[fact], again[fact]) for fact in original if original[fact] != again[fact]}
        assert differing == {}, f"{path.parent.name}/{path.name}"


def test_captures_have_the_renamed_attributes() -> None:
    keys = {
        key
        for name in OWN_SETS
        for path in _few(name)
        for one in captured(path)
        for span in one.evidence.spans
        for key in span.attributes
    }
    assert keys >= {"gen_ai.system", "gen_ai.provider.name", *MESSAGES, WORKFLOW}

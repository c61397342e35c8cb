"""Ax."""

from __future__ import annotations

from pandaeval_otel.model import Kind, Usage
from tests.unit.dialects.composed import event, seen


def test_a_program_and_its_tool() -> None:
    found = seen({"signature_name": "Be brief.", "provided_functions": "look,book,look"}, "weather-desk", name="AxGen")
    assert found.kind is Kind.WORKFLOW
    assert [tool.name for tool in found.tools or ()] == ["look", "book"]
    tool = {"tool.name": "look", "tool.mode": "native", "function.id": "c9"}
    found = seen(tool, "weather-desk", name="Tool: look")
    assert (found.kind, found.tool_name, found.tool_call_id) == (Kind.TOOL, "look", "c9")
    assert seen({"tool.size": 3}, name="Tool: hammer").kind is not Kind.TOOL


def test_token_usage_is_read_from_an_event() -> None:
    spent = event("gen_ai.usage", **{"gen_ai.usage.input_tokens": 57, "gen_ai.usage.output_tokens": 18})
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    found = seen(chat, "weather-desk", [event("gen_ai.user.message"), spent], name="AI Chat Request")
    assert (found.kind, found.usage) == (Kind.LLM, Usage(57, 18))

"""Dialects claim spans only by their own scope or name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects._reading import dialects
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal import spans
from tests.unit.dialects.composed import seen

CHAT = {"gen_ai.request.model": "gpt-x", "gen_ai.usage.output_tokens": 3}
TOOL = {"gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "c9"}
OTHERS = {
    "input and output": {"input.value": "Weather in Oslo?", "output.value": "4 degrees."},
    "mime types": {"input.value": "{}", "input.mime_type": "application/json"},
    "entity": {"entity.type": "agent", "entity.name": "row"},
    "span.type": {"span.type": "task", "entity.id": "7"},
    "bare input": {"input": "Weather in Oslo?", "output": "4 degrees."},
    "bare kinds": {"entity.kind": "order", "input.rows": 3, "output.rows": 4},
}


@pytest.mark.parametrize("more", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize(("own", "kind"), [(CHAT, Kind.LLM), (TOOL, Kind.TOOL)])
def test_common_attribute_names_do_not_change_the_kind(own: dict[str, Any], kind: Kind, more: dict[str, Any]) -> None:
    assert seen({**more, **own}).kind is kind


@pytest.mark.parametrize("more", [OTHERS["entity"], OTHERS["span.type"], OTHERS["bare input"], OTHERS["bare kinds"]])
def test_common_attribute_names_alone_make_no_agent_span(more: dict[str, Any]) -> None:
    assert seen(more).kind is Kind.OTHER


def test_common_attributes_complete_a_genai_span() -> None:
    span = seen({**OTHERS["input and output"], **CHAT})
    assert span.output is not None
    assert span.output[0].text == "4 degrees."
    assert span.dialects == ("gen_ai", "openinference")


def test_the_dialect_that_reads_more_of_the_shared_keys_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sharing:
        priority, roots, scopes, names = 30, frozenset({"mine"}), (), ()

        def __init__(self, name: str, *shared: str) -> None:
            self.name, self.shared_roots = name, frozenset(shared)

        def read(self, span: RawSpan, logs: object) -> Reading:
            return Reading(Kind.TOOL, tool_name=self.name)

    both = (Sharing("little", "order"), Sharing("much", "order", "cargo"))
    monkeypatch.setattr(spans, "dialects", lambda: (*dialects(), *both))
    monkeypatch.setattr(spans, "_plan", spans._plan.__wrapped__)
    monkeypatch.setattr(spans, "_possible", spans._possible.__wrapped__)
    assert seen({"order.id": "7", "cargo.id": "8"}).tool_name == "much"


class TestVendors:
    def test_agentops_tool_call(self) -> None:
        attributes = {
            "agentops.span.kind": "tool",
            "tool.name": "get_weather",
            "tool.parameters": '{"city": "Oslo"}',
            "tool.result": '{"temp_c": 4}',
            "group.id": "s1",
        }
        span = seen(attributes)
        assert (span.kind, span.tool_name, span.session_ids[0][1]) == (Kind.TOOL, "get_weather", "s1")
        assert (span.arguments and span.arguments.value, span.result and span.result.value) == (
            {"city": "Oslo"},
            {"temp_c": 4},
        )
        assert seen({**attributes, "tool.status": "failed", "error.message": "timeout"}).error == "timeout"

    def test_agentops_agents_and_tools(self) -> None:
        agent = {"agentops.span.kind": "agent", "agent.name": "desk", "agent.tools": '["get_weather"]'}
        span = seen(agent)
        assert (span.kind, span.agent_name, [tool.name for tool in span.tools or ()]) == (
            Kind.AGENT,
            "desk",
            ["get_weather"],
        )
        listed = {
            "agentops.span.kind": "llm",
            "gen_ai.request.model": "gpt-x",
            "gen_ai.request.tools.0.name": "get_weather",
            "gen_ai.request.tools.0.description": "Weather of a city",
            "gen_ai.request.tools.0.arguments": '{"properties": {"city": {}}}',
        }
        (tool,) = seen(listed).tools or ()
        assert (tool.description, tool.parameters) == ("Weather of a city", {"properties": {"city": {}}})

    def test_agentops_decorators(self) -> None:
        span = seen(
            {
                "agentops.span.kind": "workflow",
                "agentops.entity.input": '{"args": ["Weather in Oslo?"], "kwargs": {}}',
                "agentops.entity.output": '"4 degrees."',
            }
        )
        assert span.kind is Kind.WORKFLOW
        assert [message.text for message in (*(span.input or ()), *(span.output or ()))] == [
            "Weather in Oslo?",
            "4 degrees.",
        ]

    @pytest.mark.parametrize(
        ("kind", "value", "text"),
        [
            ("json", {"question": "Weather in Oslo?"}, "Weather in Oslo?"),
            ("text", "Weather in Oslo?", "Weather in Oslo?"),
            ("chat_messages", [{"role": "user", "content": "Weather in Oslo?"}], "Weather in Oslo?"),
            ("raw", "Weather in Oslo?", "Weather in Oslo?"),
            ("list", ["Weather in Oslo?"], "Weather in Oslo?"),
        ],
    )
    def test_langwatch_typed_input_session_and_user(self, kind: str, value: Any, text: str) -> None:
        typed = json.dumps({"type": kind, "value": value})
        metadata = {"metadata": '{"thread_id": "s1", "user_id": "u1"}'}
        span = seen({"langwatch.span.type": "span", "langwatch.input": typed, **metadata}, name="desk")
        assert (span.kind, span.agent_name, span.user_id, span.session_ids[0][1]) == (
            Kind.WORKFLOW,
            "desk",
            "u1",
            "s1",
        )
        assert span.input is not None
        assert span.input[0].text == text

    def test_langwatch_tool_and_model(self) -> None:
        tool = seen({"langwatch.span.type": "tool", "langwatch.input": '{"type": "json", "value": {"city": "Oslo"}}'})
        assert (tool.kind, tool.arguments and tool.arguments.value) == (Kind.TOOL, {"city": "Oslo"})
        model = seen(
            {
                "langwatch.span.type": "llm",
                "langwatch.output": '{"type": "chat_messages", "value": [{"role": "assistant", "content": "4."}]}',
                "langwatch.params": '{"tools": [{"type": "function", "function": {"name": "get_weather"}}]}',
                "langwatch.metrics": '{"prompt_tokens": 5, "completion_tokens": 2}',
            }
        )
        assert (model.kind, model.usage and model.usage.input) == (Kind.LLM, 5)
        assert model.output is not None
        assert model.output[0].text == "4."
        assert [tool.name for tool in model.tools or ()] == ["get_weather"]

    @pytest.mark.parametrize(
        ("word", "kind"),
        [("LLM", Kind.LLM), ("AGENT", Kind.AGENT), ("TOOL", Kind.TOOL), ("RETRIEVER", Kind.RETRIEVAL)],
    )
    @pytest.mark.parametrize("key", ["gen_ai.span.kind", "fi.span.kind"])
    def test_traceai_kinds(self, key: str, word: str, kind: Kind) -> None:
        assert seen({key: word, "graph.node.id": "desk"}, "traceai_openai_agents").kind is kind

    def test_traceai_model(self) -> None:
        said = "gen_ai.output.messages.0.message"
        span = seen(
            {
                "gen_ai.span.kind": "LLM",
                "gen_ai.input.messages.0.message.role": "user",
                "gen_ai.input.messages.0.message.content": "Weather in Oslo?",
                f"{said}.role": "assistant",
                f"{said}.tool_calls.0.tool_call.function.name": "get_weather",
                f"{said}.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
                "gen_ai.tool.definitions.0.tool.json_schema": '{"function": {"name": "get_weather"}}',
                "gen_ai.usage.input_tokens": 9,
                "gen_ai.usage.output_tokens": 3,
            }
        )
        assert span.input is not None
        assert span.output is not None
        assert (span.input[0].text, span.output[0].tool_requests[0].arguments) == (
            "Weather in Oslo?",
            {"city": "Oslo"},
        )
        assert (span.usage and span.usage.input, [tool.name for tool in span.tools or ()]) == (9, ["get_weather"])

    def test_genkit_for_go(self) -> None:
        tool = {"genkit:type": "action", "genkit:metadata:subtype": "tool.v2", "genkit:output": '{"output": {"t": 4}}'}
        span = seen(tool, "genkit-tracer")
        assert (span.kind, span.result and span.result.value) == (Kind.TOOL, {"t": 4})

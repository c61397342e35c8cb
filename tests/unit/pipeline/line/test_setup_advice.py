"""First-run hints, once per service and kind."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from pandaeval_collector.pipeline.line.setup_advice import Hints, cure, lacking
from pandaeval_otel.dialects.pydantic_ai import PydanticAI
from pandaeval_otel.model import Kind, Message, Span, Text, ToolRequest, ToolResponse, Trace

SPAN = Span("0a" * 16, "0b" * 8, "", "invoke_agent", Kind.AGENT, 0, 1, scope="agent_framework")
BARE = Trace("0a" * 16, (SPAN,), SPAN.span_id, service="shop")
GOOD = replace(BARE, input="hello", output="hi", session_id="s")


def told(caplog: pytest.LogCaptureFixture, *traces: Trace, has_judge: bool = True) -> list[str]:
    with caplog.at_level(logging.INFO):
        Hints(has_judge).look((trace.service, lacking(trace)) for trace in traces)
    assert {record.levelname for record in caplog.records} <= {"WARNING"}
    return [record.message for record in caplog.records]


def test_a_complete_trace_gets_no_hint(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, GOOD) == []


def test_missing_content_and_a_missing_session_give_a_hint_each(caplog: pytest.LogCaptureFixture) -> None:
    content, session = told(caplog, BARE)
    assert "'shop'" in content
    assert "ENABLE_SENSITIVE_DATA=true" in content
    assert "gen_ai.conversation.id" in session


def test_each_hint_is_given_once_per_service(caplog: pytest.LogCaptureFixture) -> None:
    other = replace(BARE, service="support", session_id="s")
    assert len(told(caplog, BARE, BARE, other, other)) == 3


def test_an_input_or_output_alone_is_content(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, replace(GOOD, output=None)) == []
    assert told(caplog, replace(GOOD, input=None, output="")) == []


def test_content_of_an_inner_span_is_content(caplog: pytest.LogCaptureFixture) -> None:
    inner = replace(SPAN, kind=Kind.LLM, output=(Message("assistant", (Text("hi"),)),))
    assert told(caplog, replace(GOOD, input=None, output=None, spans=(SPAN, inner))) == []


def test_tool_names_are_no_content(caplog: pytest.LogCaptureFixture) -> None:
    inner = replace(SPAN, kind=Kind.LLM, output=(Message("assistant", (ToolRequest("search"),)),))
    assert len(told(caplog, replace(GOOD, input=None, output=None, spans=(SPAN, inner)))) == 1


def test_model_calls_with_tools_but_without_an_agent_span_give_a_hint(caplog: pytest.LogCaptureFixture) -> None:
    question, result = Message("user", (Text("where?"),)), Message("tool", (ToolResponse("here"),))
    call = replace(SPAN, kind=Kind.LLM, input=(question,))
    assert told(caplog, replace(GOOD, spans=(call,))) == []
    assert told(caplog, replace(GOOD, spans=(SPAN, call), ends_in_tool_call=True)) == []
    [hint] = told(caplog, replace(GOOD, spans=(replace(call, input=(question, result)),)))
    assert "agent_turn" in hint
    asks = replace(GOOD, service="support", spans=(call,), ends_in_tool_call=True)
    assert "'support'" in told(caplog, asks, asks)[-1]


def test_a_missing_judge_gives_one_hint_for_all_services(caplog: pytest.LogCaptureFixture) -> None:
    [judge] = told(caplog, GOOD, replace(GOOD, service="support"), has_judge=False)
    assert "judge.model" in judge


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("opentelemetry.instrumentation.genai.langchain", "CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
        ("opentelemetry.instrumentation.openai_v2", "gen_ai_latest_experimental"),
        ("opentelemetry.instrumentation.openai.v1", "TRACELOOP_TRACE_CONTENT=true"),
        ("opentelemetry.instrumentation.langchain", "TRACELOOP_TRACE_CONTENT=true"),
        ("traceloop.tracer", "TRACELOOP_TRACE_CONTENT=true"),
        ("gcp.vertex.agent", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS"),
        ("pydantic-ai", "include_content=True"),
        ("autogen-core", "model client"),
        ("openinference.instrumentation.openai", "OPENINFERENCE_HIDE_INPUTS"),
        ("ai", "recordInputs"),
        ("com.anthropic.claude_code.tracing", "OTEL_LOG_USER_PROMPTS=1"),
        ("something.of.mine", "CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"),
    ],
)
def test_the_cure_fits_the_instrumentation(scope: str, expected: str) -> None:
    assert expected in cure([scope])


def test_the_first_known_scope_determines_the_cure() -> None:
    assert cure(["mine", "pydantic-ai", "agent_framework"]) == PydanticAI.content_switch["pydantic-ai"]


def test_text_that_no_dialect_reads_gives_a_hint_with_its_keys(caplog: pytest.LogCaptureFixture) -> None:
    note = "1 span carries text under keys that no dialect reads: acme.output"
    (hint,) = told(caplog, replace(GOOD, input=None, output=None, notes=(note,)))
    assert note in hint
    assert "pandaeval inspect" in hint

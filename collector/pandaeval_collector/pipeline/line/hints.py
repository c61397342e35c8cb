"""Logs first-run hints: what keeps a service from being scored in full, once per service, with the cure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pandaeval_otel.model import Kind, Text, ToolResponse, Trace

_log = logging.getLogger(__name__)
_MAX_REMEMBERED = 1000
_OTEL = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY and "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental (releases before these modes: "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, and send the log records here as well)"
)
_TRACELOOP = "set TRACELOOP_TRACE_CONTENT=true (it may have been set to false)"
CURES: Mapping[str, str] = {
    "gcp.vertex.agent": "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (with "
    "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1, and in older releases: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true)",
    "agent_framework": "set ENABLE_SENSITIVE_DATA=true",
    "pydantic-ai": "instrument with InstrumentationSettings(include_content=True)",
    "strands": "send the log records here as well: some exporters move the content of spans into log records",
    "autogen-core": "instrument the model client too, for example with opentelemetry-instrumentation-openai-v2: "
    "AutoGen's own spans never hold content",
    "haystack": "set HAYSTACK_CONTENT_TRACING_ENABLED=true",
    "com.anthropic.claude_code": "set OTEL_LOG_USER_PROMPTS=1, OTEL_LOG_TOOL_DETAILS=1 and OTEL_LOG_TOOL_CONTENT=1",
    "openinference.": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other OPENINFERENCE_HIDE_*",
    "openlit": "call openlit.init(capture_message_content=True)",
    "langsmith": "unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS",
    "ai": "pass experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true }",
    "traceloop.": _TRACELOOP,
    "openllmetry": _TRACELOOP,
    "opentelemetry.instrumentation.openai.v1": _TRACELOOP,
    "opentelemetry.instrumentation.anthropic": _TRACELOOP,
    "opentelemetry.instrumentation.langchain": _TRACELOOP,
    "opentelemetry.instrumentation.openai_agents": _TRACELOOP,
    "opentelemetry.instrumentation.crewai": _TRACELOOP,
    "opentelemetry.instrumentation.llamaindex": _TRACELOOP,
    "opentelemetry.instrumentation.bedrock": _TRACELOOP,
    "opentelemetry.instrumentation.agno": _TRACELOOP,
    "opentelemetry.": _OTEL,
}
"""How content is switched on, by the name of the instrumentation scope or its beginning (up to a dot)."""


@dataclass(slots=True)
class Lacking:
    """What keeps a trace of a service from being scored in full. ``content``: how its instrumentation is told to
    capture content, empty where it did; ``session``: whether the trace names none; ``root``: whether it is one model
    call of an agent whose other calls are traces of their own."""

    service: str
    content: str = ""
    session: bool = False
    root: bool = False


def lacking(trace: Trace) -> Lacking:
    """Finds out what keeps a trace from being scored in full."""
    content = "" if _has_content(trace) else cure((*_scopes(trace), *trace.dialects))
    no_session = trace.session_id is None and not trace.continues
    return Lacking(trace.service, content, no_session, _is_part_of_a_run(trace))


class Hints:
    """Collects what decided traces lack and logs each hint once. One thread."""

    def __init__(self, has_judge: bool) -> None:
        self._has_judge = has_judge
        self._told: set[tuple[str, str]] = set()

    def look(self, traces: Iterable[Lacking]) -> None:
        """Logs what these traces lack, unless the same was logged for their service before."""
        for trace in traces:
            if trace.content:
                self._tell(
                    trace.service,
                    "content",
                    "the spans of service %r say nothing of what was asked and answered, so most metrics have nothing "
                    "to look at; in that service, %s",
                    trace.service,
                    trace.content,
                )
            if trace.session:
                self._tell(
                    trace.service,
                    "session",
                    "the traces of service %r name no session, so conversations cannot be scored as a whole; put "
                    "gen_ai.conversation.id (or session.id) on their spans, in Python: "
                    "with pandaeval_otel.using_session(...)",
                    trace.service,
                )
            if trace.root:
                self._tell(
                    trace.service,
                    "root",
                    "each model call of service %r is a trace of its own, so only the call that ends a run is scored, "
                    "by the history that it holds; open a span around the agent's work, in Python: "
                    "with pandaeval_otel.agent_turn(...)",
                    trace.service,
                )
            if not self._has_judge:
                self._tell(
                    "",
                    "judge",
                    "no judge is configured, so only what needs no model is scored; set judge.model "
                    "(PANDAEVAL_JUDGE__MODEL) for the others",
                )

    def _tell(self, service: str, kind: str, text: str, *values: str) -> None:
        if (service, kind) not in self._told and len(self._told) < _MAX_REMEMBERED:
            self._told.add((service, kind))
            _log.warning(text, *values)


def cure(names: Iterable[str]) -> str:
    """Returns how content is switched on in the first of these instrumentations (scopes or dialects) that is known."""
    for name in names:
        for beginning, text in CURES.items():
            if name == beginning or name.startswith(beginning if beginning.endswith(".") else f"{beginning}."):
                return text
    return _OTEL


def _is_part_of_a_run(trace: Trace) -> bool:
    """Returns whether a trace is one model call that asks for tools or answers their results: nothing holds its agent's
    calls together. A model call without tools may well be the whole of an application."""
    if len(trace.spans) != 1 or trace.spans[0].kind is not Kind.LLM:
        return False
    messages = trace.spans[0].input or ()
    return trace.ends_in_tool_call or any(isinstance(part, ToolResponse) for each in messages for part in each.parts)


def _scopes(trace: Trace) -> list[str]:
    """Returns the instrumentation scopes of all spans, those that could hold content first."""
    speaking = (Kind.LLM, Kind.AGENT, Kind.WORKFLOW)
    return [span.scope for span in sorted(trace.spans, key=lambda span: span.kind not in speaking)]


def _has_content(trace: Trace) -> bool:
    """Returns whether any text was captured; a trace whose one side is missing is no reason for a hint."""
    if trace.input is not None or trace.output is not None:
        return True
    messages = (message for span in trace.spans for message in (*(span.input or ()), *(span.output or ())))
    return any(isinstance(part, Text) for message in messages for part in message.parts)

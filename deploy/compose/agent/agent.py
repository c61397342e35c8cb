"""The example agent: a support desk with tools, instrumented by GenAI conventions.

Traces go by OTLP to the OpenTelemetry Collector, and by ``PandaEvalSpanProcessor`` to PandaEval. Environment:
``OTEL_EXPORTER_OTLP_ENDPOINT`` (none: PandaEval only), ``PANDAEVAL_ENDPOINT``, ``AGENT_PAUSE_S`` (seconds between
sessions, 5), ``AGENT_SESSIONS`` (0: endless).
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import threading
import uuid
from collections.abc import Iterator

from desk import SESSIONS, TOOLS, Reply, Session, ToolCall
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, Tracer

from pandaeval_otel import PandaEvalSpanProcessor, session_end, using_session

_log = logging.getLogger("agent")
_MODEL = "scripted-1"
_AGENT = "support-desk"


def instrument() -> TracerProvider:
    """Set up telemetry. Only the last line but one is PandaEval's."""
    provider = TracerProvider(resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "shop")}))
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    provider.add_span_processor(PandaEvalSpanProcessor())
    return provider


def ask(tracer: Tracer, session: Session, conversation: str, question: str) -> None:
    """Answer a question in a trace. A failing agent leaves status ERROR."""
    messages: list[dict[str, object]] = [_said("user", question)]
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": _AGENT,
        "gen_ai.conversation.id": conversation,
        "gen_ai.input.messages": json.dumps(messages),
    }
    with tracer.start_as_current_span(f"invoke_agent {_AGENT}", attributes=attributes) as span:
        answer = _work(tracer, session.script(question), messages)
        span.set_attribute("gen_ai.output.messages", json.dumps([_said("assistant", answer)]))


def _work(tracer: Tracer, replies: Iterator[Reply], messages: list[dict[str, object]]) -> str:
    for number in itertools.count():
        reply = _chat(tracer, replies, messages, f"call_{number}")
        if isinstance(reply, str):
            return reply
        result = _use(tracer, reply, f"call_{number}")
        part = {"type": "tool_call_response", "id": f"call_{number}", "response": result}
        messages.append({"role": "tool", "parts": [part]})
    raise AssertionError("the model never answers")


def _chat(tracer: Tracer, replies: Iterator[Reply], messages: list[dict[str, object]], call_id: str) -> Reply:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "example",
        "gen_ai.request.model": _MODEL,
        "gen_ai.input.messages": json.dumps(messages),
    }
    with tracer.start_as_current_span(f"chat {_MODEL}", kind=SpanKind.CLIENT, attributes=attributes) as span:
        reply = next(replies)
        said = _said("assistant", reply) if isinstance(reply, str) else _asked(reply, call_id)
        span.set_attribute("gen_ai.output.messages", json.dumps([said]))
        messages.append(said)
        return reply


def _use(tracer: Tracer, call: ToolCall, call_id: str) -> str:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(call.arguments),
    }
    with tracer.start_as_current_span(f"execute_tool {call.name}", attributes=attributes) as span:
        result = TOOLS[call.name](**call.arguments)
        span.set_attribute("gen_ai.tool.call.result", result)
        return result


def _said(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _asked(call: ToolCall, call_id: str) -> dict[str, object]:
    part = {"type": "tool_call", "id": call_id, "name": call.name, "arguments": dict(call.arguments)}
    return {"role": "assistant", "parts": [part]}


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    provider = instrument()
    tracer = provider.get_tracer("example.support_desk")
    wanted, pause = int(os.environ.get("AGENT_SESSIONS", "0")), float(os.environ.get("AGENT_PAUSE_S", "5"))
    rounds = itertools.islice(itertools.cycle(SESSIONS), wanted or None)
    trace.set_tracer_provider(provider)
    for session in rounds:
        conversation = f"{session.name}-{uuid.uuid4().hex[:8]}"
        _log.info("session %s", conversation)
        with using_session(conversation):
            for question in session.questions:
                try:
                    ask(tracer, session, conversation, question)
                except LookupError as error:
                    _log.info("the agent broke: %s", error)
        session_end(conversation)
        if stop.wait(pause):
            break
    provider.shutdown()


if __name__ == "__main__":
    main()

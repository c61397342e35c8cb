"""Synthetic GenAI traces of 12 spans for benchmarks: an agent, six model calls, five tool calls."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SPANS_PER_TRACE = 12
SIZES = {"1 KB": 1110, "5 KB": 5875}
"""``span_bytes`` for spans of 1,000 or 5,000 bytes on the wire."""

_SESSIONS, _PER_SESSION = 50, 10
_FIRST_NS, _APART_NS = 1_760_000_000_000_000_000, 100_000_000
_WORDS = """
order parcel invoice refund balance flight booking seat meeting report table garden river window letter price delivery
address account number today tomorrow morning request answer question city market bridge station forecast rain wind
sunny ticket museum library recipe dinner kitchen doctor appointment result payment customer
""".split()  # noqa: SIM905


def request(traces: int, seed: int, span_bytes: int = 1000) -> bytes:
    """Return a request of whole traces with spans of about ``span_bytes``. Rising ``seed`` continues a stream."""
    rng = random.Random(seed)
    export = ExportTraceServiceRequest()
    resource_spans = export.resource_spans.add()
    _set(resource_spans.resource.attributes, "service.name", f"bench-{seed % 5}")
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "opentelemetry.instrumentation.genai.bench"
    for number in range(seed * traces, (seed + 1) * traces):
        _trace(scope_spans.spans, rng, max(40, span_bytes - 480), number)
    return export.SerializeToString()


class Stream:
    """Endless unique requests, derived quickly from ``distinct`` templates."""

    def __init__(self, traces: int, span_bytes: int, distinct: int = 100, first: int = 0) -> None:
        self._rng = random.Random(first)
        self._number = first
        ready = (ExportTraceServiceRequest.FromString(request(traces, seed, span_bytes)) for seed in range(distinct))
        self._ready = [(each, list(each.resource_spans[0].scope_spans[0].spans)) for each in ready]
        self._sent = 0
        self.trace_ids: list[str] = []
        """The traces of the newest request."""

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> bytes:
        export, spans = self._ready[self._sent % len(self._ready)]
        self._sent += 1
        self.trace_ids = []
        for at in range(0, len(spans), SPANS_PER_TRACE):
            self._renew(spans[at : at + SPANS_PER_TRACE])
        made: bytes = export.SerializeToString()
        return made

    def _renew(self, spans: list[Any]) -> None:
        trace_id = self._rng.randbytes(16)
        self.trace_ids.append(trace_id.hex())
        later = _start(self._number) - min(span.start_time_unix_nano for span in spans)
        for span in spans:
            span.trace_id = trace_id
            span.start_time_unix_nano += later
            span.end_time_unix_nano += later
        session = next(pair for pair in spans[-1].attributes if pair.key == "gen_ai.conversation.id")
        session.value.string_value = _session(self._number)
        self._number += 1


def _start(number: int) -> int:
    return _FIRST_NS + number * _APART_NS


def _session(number: int) -> str:
    return f"session-{number // (_SESSIONS * _PER_SESSION)}-{number % _SESSIONS}"


def _trace(spans: Any, rng: random.Random, text_bytes: int, number: int) -> None:
    trace_id, root = rng.randbytes(16), rng.randbytes(8)
    start = _start(number)
    question, answer = _text(rng, text_bytes // 3), _text(rng, text_bytes // 3)

    def span(name: str, parent: bytes, kind: int, at: int, facts: Mapping[str, str | int]) -> None:
        made = spans.add(trace_id=trace_id, span_id=rng.randbytes(8) if parent else root, parent_span_id=parent)
        made.name, made.kind, made.flags = name, kind, 0x101
        made.start_time_unix_nano, made.end_time_unix_nano = start + at * 10**6, start + (at + 50) * 10**6
        for key, value in facts.items():
            _set(made.attributes, key, value)

    for step in range(6):
        model: dict[str, str | int] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.id": rng.randbytes(8).hex(),
            "gen_ai.usage.input_tokens": 200 + step,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.input.messages": _messages("user", question),
        }
        call, arguments = f"call_{rng.randbytes(6).hex()}", json.dumps({"query": _text(rng, 24), "page": step})
        if step < 5:
            part = {"type": "tool_call", "id": call, "name": "search_things", "arguments": json.loads(arguments)}
            model["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": [part]}])
            model["gen_ai.system_instructions"] = _text(rng, text_bytes // 3)
        else:
            model["gen_ai.output.messages"] = _messages("assistant", answer)
        span("chat gpt-4o-mini", root, 3, 100 * step, model)
        if step < 5:
            tool = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search_things",
                "gen_ai.tool.call.id": call,
                "gen_ai.tool.call.arguments": arguments,
                "gen_ai.tool.call.result": json.dumps({"found": _text(rng, text_bytes)}),
            }
            span("execute_tool search_things", root, 1, 100 * step + 50, tool)
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "bench_agent",
        "gen_ai.conversation.id": _session(number),
        "gen_ai.input.messages": _messages("user", question),
        "gen_ai.output.messages": _messages("assistant", answer),
    }
    span("invoke_agent bench_agent", b"", 1, 0, agent)
    spans[-1].end_time_unix_nano = start + 650 * 10**6


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _text(rng: random.Random, size: int) -> str:
    return " ".join(rng.choices(_WORDS, k=max(1, size // 7)))


def _set(attributes: Any, key: str, value: str | int) -> None:
    pair = attributes.add(key=key)
    if isinstance(value, int):
        pair.value.int_value = value
    else:
        pair.value.string_value = value

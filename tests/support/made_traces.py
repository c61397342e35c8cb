"""Small seeded agent traces with GenAI attributes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

START_NS = 1_790_000_000 * 10**9
_MS = 10**6
# question, answers, and the tool that finds the answer
_TOPICS = (
    (
        "Where is my parcel {n}, left at the depot this morning?",
        ("Parcel {n} left the depot this morning.", "It is on its way; the parcel left the depot this morning."),
        "track_parcel",
    ),
    (
        "How much is the fare, a ticket to the town of district {n}?",
        ("A ticket to the town of district {n} is 24 euros.",),
        "get_fare",
    ),
    (
        "Which errors did server {n} log when the disk ran out at noon?",
        ("Server {n} ran out of disk at noon.", "There were no errors when server {n} ran out of disk at noon."),
        "search_logs",
    ),
    (
        "Cancel my booking {n} and send the money back.",
        ("Booking {n} is cancelled, the money comes back in a week.",),
        "cancel_booking",
    ),
    ("Will rain be expected in district {n} today?", ("No rain is expected in district {n} today.",), "get_weather"),
)
_OFF_TOPIC = "Ancient bakers kneading rye flour: honey, yeast, salted crust, garlic loaves."
_SUBJECTS = 4
_SERVICES = ("shop", "support")


@dataclass(frozen=True, slots=True)
class MadeTrace:
    """``spans`` in order of end, root last."""

    trace_id: bytes
    session: str | None
    service: str
    spans: tuple[Span, ...]

    def request(self, spans: Iterable[Span] | None = None) -> ExportTraceServiceRequest:
        """Return an OTLP request with all or these spans."""
        request = ExportTraceServiceRequest()
        block = request.resource_spans.add()
        block.resource.attributes.add(key="service.name").value.string_value = self.service
        scope = block.scope_spans.add()
        scope.scope.name = "made.by.code"
        scope.spans.extend(self.spans if spans is None else spans)
        return request


class Composer:
    """Composes traces of 1 to 12 spans, with varied behaviour and sessions."""

    def __init__(self, seed: int, sessions: int = 6) -> None:
        self._random = random.Random(seed)
        self._prefix, self._made = seed, 0
        self._sessions = [self._session(number) for number in range(sessions)]
        self._next_session = sessions

    def trace(self, spans: int | None = None) -> MadeTrace:
        """Return the next trace, with IDs from seed and number."""
        self._made += 1
        chance = self._random
        if chance.random() < 0.05:
            self._sessions[chance.randrange(len(self._sessions))] = self._session(self._next_session)
            self._next_session += 1
        session = chance.choice(self._sessions) if chance.random() < 0.85 else None
        trace_id = self._prefix.to_bytes(8, "big") + self._made.to_bytes(8, "big")
        script = _Script(chance, trace_id, START_NS + self._made * 7_000 * _MS, session)
        made = script.spans(spans or chance.randint(1, 12))
        service = chance.choice(_SERVICES)
        if session is not None:  # the same session ID in two services would be two sessions
            service = _SERVICES[int(session.rpartition("-")[2]) % len(_SERVICES)]
        return MadeTrace(trace_id, session, service, tuple(made))

    def _session(self, number: int) -> str:
        return f"session-{self._prefix}-{number}"


def questions() -> Iterator[tuple[str, str]]:
    """Return all user questions, each with its tool."""
    return ((question.format(n=number), tool) for question, _, tool in _TOPICS for number in range(_SUBJECTS))


class _Script:
    """One agent run of alternating model and tool calls."""

    def __init__(self, chance: random.Random, trace_id: bytes, start_ns: int, session: str | None) -> None:
        self._chance, self._trace_id, self._now, self._session = chance, trace_id, start_ns, session
        self._number = 0
        subject = chance.randrange(_SUBJECTS)
        question, answers, self._tool = chance.choice(_TOPICS)
        self._question = question.format(n=subject)
        self._answer = _OFF_TOPIC if chance.random() < 0.1 else chance.choice(answers).format(n=subject)
        self._repeats = chance.random() < 0.15
        luck = chance.random()
        self._silent, self._answer = luck < 0.06, "" if luck > 0.96 else self._answer

    def spans(self, number: int) -> list[Span]:
        if number == 1:
            return [self._span("chat small-1", b"", 800, self._call(None))]
        root_id = self._new_id()
        started = self._now
        made: list[Span] = []
        for step in range(number - 1):
            last = step == number - 2
            if step % 2 and not last:
                made.append(self._span(f"execute_tool {self._tool}", root_id, 120, self._tool_call(step)))
            else:
                made.append(self._span("chat small-1", root_id, 900, self._call(None if last else step)))
        root = self._span("invoke_agent helper", b"", 5, self._agent(), root_id)
        root.start_time_unix_nano = started
        return [*made, root]

    def _span(self, name: str, parent: bytes, ms: int, attributes: dict[str, Any], span_id: bytes = b"") -> Span:
        span = Span(trace_id=self._trace_id, span_id=span_id or self._new_id(), parent_span_id=parent, name=name)
        span.start_time_unix_nano = self._now
        self._now += ms * _MS
        span.end_time_unix_nano = self._now
        if self._session is not None:
            attributes["gen_ai.conversation.id"] = self._session
        if self._silent:
            attributes = {key: value for key, value in attributes.items() if not key.endswith("messages")}
        for key, value in attributes.items():
            held = span.attributes.add(key=key).value
            if isinstance(value, int):
                held.int_value = value
            else:
                held.string_value = value if isinstance(value, str) else json.dumps(value)
        return span

    def _new_id(self) -> bytes:
        self._number += 1
        return self._trace_id[-6:] + self._number.to_bytes(2, "big")

    def _agent(self) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "helper",
            "gen_ai.input.messages": [_said("user", self._question)],
            "gen_ai.output.messages": [_said("assistant", self._answer)],
        }

    def _call(self, asks_tool: int | None) -> dict[str, Any]:
        part = {"type": "tool_call", "id": f"call_{asks_tool}", "name": self._tool, "arguments": self._arguments()}
        answer = _said("assistant", self._answer)
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "small-1",
            "gen_ai.input.messages": [_said("user", self._question)],
            "gen_ai.output.messages": [answer if asks_tool is None else {"role": "assistant", "parts": [part]}],
            "gen_ai.usage.input_tokens": self._chance.randint(20, 400),
            "gen_ai.usage.output_tokens": self._chance.randint(5, 80),
        }

    def _tool_call(self, step: int) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": self._tool,
            "gen_ai.tool.call.id": f"call_{step - 1}",
            "gen_ai.tool.call.arguments": self._arguments(),
            "gen_ai.tool.call.result": {"found": 1 if self._repeats else self._chance.randrange(1000)},
        }

    def _arguments(self) -> dict[str, Any]:
        return {"id": 7 if self._repeats else self._chance.randrange(1000)}


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}

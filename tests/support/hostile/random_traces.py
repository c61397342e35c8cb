"""Seeded random traces that are expensive to read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.hostile_traces import UNITS
from support.pumping import POOL

_STARTS = ("", "«", "<code>", "[tool: ", "```python\n", "print", "{", '"', "Traceback (most recent call last):\n", "1")
_MORE_UNITS = ("[tool: ]", "<code>", "print ", "-a", "\n", "- ", "* a\n", "]]", "\\n", "</a>", "1", "é́", "\u2028", "=>")
_ENDS = ("", "x", "()!", "@", "\n", "\\", "]")
_PLACES = (
    *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
    *("gen_ai.prompt", "gen_ai.completion", "gen_ai.system_instructions", "gen_ai.tool.definitions"),
    *("input.value", "output.value", "llm.input_messages.0.message.content", "llm.output_messages.0.message.content"),
    *(
        "traceloop.entity.input",
        "traceloop.entity.output",
        "ai.prompt.messages",
        "ai.response.text",
        "mlflow.spanInputs",
    ),
    *("gen_ai.conversation.id", "gen_ai.agent.name", "exception.message", "gen_ai.response.id", "metadata", "tag.tags"),
)
_START_NS = 1_790_000_000 * 10**9
_MOST_CHARACTERS, _MOST_SPANS = 60_000, 1_500


class HostileTraces:
    """Creates one trace request after another."""

    def __init__(self, seed: int) -> None:
        self._chance, self._seed, self._made = random.Random(seed), seed, 0

    def request(self) -> tuple[str, ExportTraceServiceRequest]:
        """Return the next trace and its kind."""
        self._made += 1
        kinds: tuple[Callable[[], tuple[str, list[Span]]], ...] = (self._texts, self._texts, self._calls, self._events)
        kind, spans = self._chance.choice(kinds)()
        return kind, request_of(spans, self._seed.to_bytes(8, "big") + self._made.to_bytes(8, "big"))

    def _text(self, characters: int) -> tuple[str, str]:
        chance = self._chance
        unit = chance.choice((*UNITS, *_MORE_UNITS))
        if chance.random() < 0.5:
            unit = "".join(chance.choice(POOL) for _ in range(chance.randint(1, 6)))
        pumped = (unit * (characters // len(unit) + 1))[:characters]
        return chance.choice(_STARTS) + pumped + chance.choice(_ENDS), unit

    def _characters(self) -> int:
        return round(100 * (_MOST_CHARACTERS / 100) ** self._chance.random())

    def _texts(self) -> tuple[str, list[Span]]:
        chance, size = self._chance, self._characters()
        places = chance.sample(_PLACES, chance.randint(1, 4))
        spans, units = (
            [agent_span(), chat_span(2, "Done."), tool_span(3), tool_span(4), chat_span(5, "All is done.")],
            [],
        )
        for place in places:
            text, unit = self._text(size)
            units.append(unit)
            say(chance.choice(spans), place, self._held(place, text))
        return f"{units!r} of {size} in {places}", spans

    def _held(self, place: str, text: str) -> str:
        """Encode a text as plain text, messages or JSON."""
        chance = self._chance
        if "messages" in place and chance.random() < 0.7:
            role = "user" if "input" in place else "assistant"
            return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
        return json.dumps({"code": text, "q": [text[:50]]}) if chance.random() < 0.5 else text

    def _calls(self) -> tuple[str, list[Span]]:
        chance = self._chance
        number = round(3 * (_MOST_SPANS / 3) ** chance.random())
        nested, alike, fails = (chance.random() < share for share in (0.3, 0.5, 0.3))
        text, unit = self._text(chance.randint(1, 60))
        spans = [agent_span()]
        for each in range(2, number + 2):
            span = tool_span(each, each - 1 if nested else 1)
            words = [text if alike else f"{text} {chance.randrange(number)}"]
            say(span, "gen_ai.tool.call.arguments", json.dumps({chance.choice(("q", "code")): words[0]}))
            if fails:
                span.status.code, span.status.message = 2, f"{text} at {each}"
            spans.append(span)
        spans.append(chat_span(number + 2, "Done."))
        return f"{number} calls, {nested=} {alike=} {fails=} of {unit!r}", spans

    def _events(self) -> tuple[str, list[Span]]:
        chance = self._chance
        number = round(3 * (5_000 / 3) ** chance.random())
        chat = chat_span(2, "Done.")
        for _ in range(number):
            event = chat.events.add(name=chance.choice(("gen_ai.user.message", "gen_ai.choice", "exception", "log")))
            event.attributes.add(key="content").value.string_value = self._text(chance.randint(1, 30))[0]
        depth = chance.choice((1, 50, 900))
        say(chat, "gen_ai.tool.call.result", '{"a":' * depth + "1" + "}" * depth)
        return f"{number} events, a value {depth} deep", [agent_span(), chat]


def request_of(spans: Sequence[Span], trace_id: bytes) -> ExportTraceServiceRequest:
    """Return a trace of these nested spans."""
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    block.resource.attributes.add(key="service.name").value.string_value = "hostile"
    scope = block.scope_spans.add()
    for number, span in enumerate(spans):
        span.trace_id = trace_id
        span.start_time_unix_nano = _START_NS + number * 1000
        span.end_time_unix_nano = _START_NS + 10**10 - number
    scope.spans.extend(spans)
    return request


def _span(number: int, parent: int, name: str, **attributes: str) -> Span:
    span = Span(span_id=number.to_bytes(8, "big"), name=name)
    if parent:
        span.parent_span_id = parent.to_bytes(8, "big")
    for key, value in attributes.items():
        say(span, f"gen_ai.{key.replace('__', '.')}", value)
    return span


def agent_span() -> Span:
    """Return the root, number 1."""
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Do it, for order 4711."}]}])
    return _span(1, 0, "invoke_agent a", operation__name="invoke_agent", agent__name="a", input__messages=asked)


def chat_span(number: int, answer: str) -> Span:
    messages: Any = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}])
    return _span(number, 1, "chat m", operation__name="chat", request__model="m", output__messages=messages)


def tool_span(number: int, parent: int = 1) -> Span:
    return _span(number, parent, "execute_tool t", operation__name="execute_tool", tool__name="t")


def say(span: Span, key: str, value: str) -> None:
    """Replace an attribute."""
    for pair in span.attributes:
        if pair.key == key:
            pair.value.string_value = value
            return
    span.attributes.add(key=key).value.string_value = value

"""The two agents of the day: an OTLP sender that resends, and an SDK application with the span processor."""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import DEFAULT_ON
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from pandaeval_otel import using_session
from support.processors import Recording, processor, witness
from support.senders import GrpcSender

DESK, SHOP = "order_desk", "shop_helper"
"""Agent A sends OTLP, agent B is the SDK application."""
REFUSED, TOO_LONG = "refund_order is not allowed", "400 too long for this model"
CLAIM = "has been refunded"
_TURNS = 3


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result, or its error."""

    tool: str
    given: dict[str, Any]
    result: dict[str, Any] | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A run. ``kind``: honest, lie, loop or crash."""

    kind: str
    session: str
    asked: str
    answer: str | None
    calls: tuple[Call, ...] = ()
    error: str = ""


def honest(session: str, turn: int, chance: random.Random) -> Script:
    """Return a turn whose answer agrees with its tool's result."""
    number, day, price = chance.randrange(10_000, 99_999), chance.choice(("Monday", "Friday")), chance.randrange(3, 60)
    if turn == 0:
        found = Call("track_order", {"order": number}, {"order": number, "state": "shipped", "arrives": day})
        return Script(
            "honest",
            session,
            f"Where is my order {number}?",
            f"Order {number} is shipped and arrives on {day}.",
            (found,),
        )
    if turn == 1:
        found = Call("get_price", {"item": f"lamp {number}"}, {"item": f"lamp {number}", "price_eur": price})
        return Script(
            "honest", session, f"How much is the lamp {number}?", f"The lamp {number} costs {price} euros.", (found,)
        )
    found = Call("opening_hours", {"shop": number}, {"shop": number, "opens": day, "from": "9:00"})
    return Script(
        "honest", session, f"When does shop {number} open?", f"Shop {number} opens on {day} at 9:00.", (found,)
    )


def lie(session: str) -> Script:
    refund = Call("refund_order", {"order": 4711}, None, REFUSED)
    return Script("lie", session, "Refund my order 4711.", f"Your order 4711 {CLAIM}.", (refund,))


def loop(session: str) -> Script:
    again = Call("search_help", {"query": "gift cards"}, {"found": []})
    return Script("loop", session, "Do you sell gift cards?", "I could not find that.", (again,) * 8)


def crash(session: str) -> Script:
    return Script("crash", session, "Summarize all my orders.", None, error=TOO_LONG)


def perform(tracer: Tracer, script: Script, agent: str) -> str:
    """Run a script and return the trace ID."""
    with tracer.start_as_current_span(f"invoke_agent {agent}") as root:
        root.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent})
        root.set_attribute("gen_ai.conversation.id", script.session)
        asked = [_text("user", script.asked)]
        root.set_attribute("gen_ai.input.messages", json.dumps(asked))
        if script.error:
            _model(tracer, asked, None, script.error)
            root.set_status(StatusCode.ERROR, script.error)
        else:
            _converse(tracer, script, asked)
            root.set_attribute("gen_ai.output.messages", json.dumps([_text("assistant", str(script.answer))]))
        return f"{root.get_span_context().trace_id:032x}"


def _converse(tracer: Tracer, script: Script, messages: list[dict[str, Any]]) -> None:
    for number, call in enumerate(script.calls):
        named = {"type": "tool_call", "id": f"call_{number}", "name": call.tool, "arguments": call.given}
        asks = {"role": "assistant", "parts": [named]}
        _model(tracer, messages, asks)
        came = _tool(tracer, call, f"call_{number}")
        part = {"type": "tool_call_response", "id": f"call_{number}", "result": came}
        messages = [*messages, asks, {"role": "tool", "parts": [part]}]
    _model(tracer, messages, _text("assistant", str(script.answer)))


def _model(tracer: Tracer, messages: Sequence[dict[str, Any]], answer: dict[str, Any] | None, error: str = "") -> None:
    with tracer.start_as_current_span("chat small-1", kind=SpanKind.CLIENT) as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-1"})
        span.set_attribute("gen_ai.input.messages", json.dumps(messages))
        span.set_attributes({"gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 20})
        if answer is not None:
            span.set_attribute("gen_ai.output.messages", json.dumps([answer]))
        _end(span, error)


def _tool(tracer: Tracer, call: Call, call_id: str) -> Any:
    with tracer.start_as_current_span(f"execute_tool {call.tool}") as span:
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.tool})
        span.set_attributes({"gen_ai.tool.call.id": call_id, "gen_ai.tool.call.arguments": json.dumps(call.given)})
        if call.result is not None:
            span.set_attribute("gen_ai.tool.call.result", json.dumps(call.result))
        _end(span, call.error)
    return call.result if call.result is not None else {"error": call.error}


def _end(span: Span, error: str) -> None:
    if error:
        span.set_status(StatusCode.ERROR, error)
    time.sleep(0.01)


def _text(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


@dataclass(frozen=True, slots=True)
class Done:
    """A run that ended at a time."""

    at: float
    agent: str
    kind: str
    session: str
    trace_id: str


class Outbound(SpanExporter):
    """Sends each whole trace until it is acknowledged, in order, on its own thread."""

    def __init__(self, target: str) -> None:
        self._door, self._waiting = GrpcSender(target), queue.Queue[Any]()
        self._open: dict[int, list[ReadableSpan]] = {}
        self.acknowledged: dict[str, float] = {}
        self.refused: list[str] = []
        threading.Thread(target=self._send_all, daemon=True).start()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            trace_id = span.context.trace_id
            self._open.setdefault(trace_id, []).append(span)
            if span.parent is None:
                self._waiting.put((f"{trace_id:032x}", encode_spans(self._open.pop(trace_id))))
        return SpanExportResult.SUCCESS

    def waiting(self) -> int:
        """Return the number of traces without acknowledgement."""
        return self._waiting.unfinished_tasks

    def _send_all(self) -> None:
        while True:
            trace_id, request = self._waiting.get()
            while not (answer := self._door.send(request)).acknowledged and not answer.refused:
                time.sleep(0.5)
            if answer.refused:
                self.refused.append(answer.refused)
            self.acknowledged[trace_id] = time.time()
            self._waiting.task_done()


class Agents:
    """Both agents at work, as a context manager. ``done``: every run; ``pause``: seconds between an agent's runs."""

    def __init__(self, desk: str, shop: str, seed: int, pause: float) -> None:
        self.done: list[Done] = []
        self.outbound, self.telemetry = Outbound(desk), Recording()
        shopping = processor(shop, self.telemetry)
        self._taken, self._times = witness(shopping), dict[str, float]()
        self._providers = {
            DESK: _provider(DESK, SimpleSpanProcessor(self.outbound)),
            SHOP: _provider(SHOP, shopping),
        }
        self._seed, self._pause, self._stop = seed, pause, threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(name,), daemon=True) for name in self._providers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop both agents after their current run, and flush."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for provider in self._providers.values():
            provider.shutdown()

    def now(self, agent: str, script: Callable[[str], Script]) -> None:
        """Run a script at once, in a session of its own."""
        self._run(agent, script(f"{agent}-{script.__name__}-{len(self.runs(script.__name__))}"))

    def acknowledged(self) -> dict[str, float]:
        """Return the time of acknowledgement by trace ID."""
        return self.outbound.acknowledged | {trace_id: self._seen(trace_id) for trace_id in [*self._taken]}

    def runs(self, kind: str = "") -> list[Done]:
        return [each for each in [*self.done] if kind in ("", each.kind)]

    def _seen(self, trace_id: str) -> float:
        return self._times.setdefault(trace_id, time.time())

    def _work(self, agent: str) -> None:
        chance, number = random.Random(f"{self._seed} {agent}"), 0
        while not self._stop.is_set():
            session, turn = divmod(number, _TURNS)
            self._run(agent, honest(f"{agent}-{session}", turn, chance))
            number += 1
            self._stop.wait(self._pause * chance.uniform(0.7, 1.3))

    def _run(self, agent: str, script: Script) -> None:
        tracer = self._providers[agent].get_tracer("day")
        with using_session(script.session):
            trace_id = perform(tracer, script, agent)
        self.done.append(Done(time.time(), agent, script.kind, script.session, trace_id))


def _provider(service: str, handler: Any) -> TracerProvider:
    made = TracerProvider(DEFAULT_ON, Resource({"service.name": service}), shutdown_on_exit=False)
    made.add_span_processor(handler)
    return made

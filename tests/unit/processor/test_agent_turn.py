"""The root span of an agent turn."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from pandaeval_otel import agent_turn


class Traced:
    """A provider and its ended spans."""

    def __init__(self) -> None:
        self.provider, self._memory = TracerProvider(), InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self._tracer = self.provider.get_tracer("a model's SDK")

    def call(self, name: str = "chat") -> None:
        with self._tracer.start_as_current_span(name):
            pass

    def ended(self) -> list[ReadableSpan]:
        return [*self._memory.get_finished_spans()]


@pytest.fixture
def traced() -> Traced:
    return Traced()


def test_calls_in_an_agent_turn_are_children_of_its_root_span(traced: Traced) -> None:
    with agent_turn("travel", tracer_provider=traced.provider) as span:
        traced.call()
        traced.call()
    first, second, root = traced.ended()
    assert root.context == span.get_span_context()
    assert root.parent is None
    assert root.name == "invoke_agent travel"
    assert root.attributes == {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel"}
    assert [call.parent for call in (first, second)] == [root.context] * 2
    assert not trace.get_current_span().get_span_context().is_valid


def test_each_call_of_a_decorated_function_starts_a_turn(traced: Traced) -> None:
    @agent_turn("plain", tracer_provider=traced.provider)
    def plain(value: int) -> int:
        traced.call()
        return value + 1

    @agent_turn("waiting", tracer_provider=traced.provider)
    async def waiting(value: int) -> int:
        await asyncio.sleep(0)
        traced.call()
        return value + 2

    async def both() -> list[int]:
        return [plain(1), *await asyncio.gather(waiting(1), waiting(2))]

    assert asyncio.run(both()) == [2, 3, 4]
    roots = [span for span in traced.ended() if span.parent is None]
    assert sorted(span.name for span in roots) == ["invoke_agent plain", "invoke_agent waiting", "invoke_agent waiting"]
    assert len({span.context.trace_id for span in traced.ended()}) == 3


def test_an_exception_is_recorded_and_raised_again(traced: Traced) -> None:
    with pytest.raises(LookupError, match="nothing"), agent_turn("travel", tracer_provider=traced.provider):
        raise LookupError("nothing")
    (root,) = traced.ended()
    assert root.status.status_code is StatusCode.ERROR
    assert [event.name for event in root.events] == ["exception"]
    assert not trace.get_current_span().get_span_context().is_valid


def test_an_agent_turn_can_be_reused_and_nested(traced: Traced) -> None:
    turn = agent_turn("travel", tracer_provider=traced.provider)
    with turn as outer, turn:
        traced.call()
    with turn:
        pass
    parents = {span.context.span_id: span.parent for span in traced.ended()}
    assert len(parents) == 4
    assert sum(parent is None for parent in parents.values()) == 2
    assert outer.get_span_context() in parents.values()


def test_decorating_a_generator_is_an_error() -> None:
    with pytest.raises(TypeError, match="steps is a generator"):

        @agent_turn("travel")
        def steps() -> object:
            yield 1

"""Conversations with an agent: input, time limit, spans."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from opentelemetry import _logs, baggage, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_lab.cases.model import Case
from pandaeval_lab.running import attempts as made_here
from pandaeval_lab.running.agent import AgentError, RunContext
from pandaeval_lab.running.attempts import Attempted, CaseAttempts, Tracing, messages_of
from pandaeval_lab.running.simulated import Simulator

TALK = {"id": "talk", "interactions": [{"input": "one"}, {"input": "two"}]}
Talk = Callable[[str, RunContext], Awaitable[str]]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(made_here, "PandaEvalSpanProcessor", lambda endpoint: SimpleSpanProcessor(exporter))
    return exporter


def _attempted(case: dict[str, Any], trial: str = "1") -> Attempted:
    return Attempted(Case.model_validate(case), trial, f"{case['id']}/{trial}")


def _run(attempts: list[Attempted], talk: Talk, *limits: float, room: int = 4) -> bool:
    made = CaseAttempts(lambda _: talk, Tracing("nowhere:1", here=False), *(limits or (60.0, 60.0)), room)
    return asyncio.run(made.run(attempts))


@pytest.mark.parametrize(
    ("case", "messages"),
    [
        ({"inputs": {"task": "hi"}}, ("hi",)),
        (TALK, ("one", "two")),
        ({"interactions": [{"input": "one"}, {}], "inputs": {"task": "hi"}}, ("hi",)),
        ({"recorded": {"messages": ["a", "b"]}}, ("a", "b")),
        ({"recorded": {"messages": ["a", "b"]}, "inputs": {"task": "a"}}, ("a", "b")),
        ({"recorded": {"messages": ["a", "b"]}, "inputs": {"task": "other"}}, ("other",)),
        ({}, ()),
    ],
)
def test_the_user_messages_of_a_case_come_from_inputs_interactions_or_a_recording(
    case: dict[str, Any], messages: tuple[str, ...]
) -> None:
    assert messages_of(Case.model_validate({"id": "x", **case})) == messages


def test_each_turn_is_a_trace_with_the_case_in_its_baggage(exported: InMemorySpanExporter) -> None:
    seen: list[tuple[str, tuple[str, ...], object]] = []

    async def talk(message: str, context: RunContext) -> str:
        carried = baggage.get_baggage("pandaeval.case.id"), baggage.get_baggage("pandaeval.trial")
        seen.append((message, tuple(each["content"] for each in context.messages), carried))
        return message.upper()

    attempt = _attempted(TALK, "7")
    assert _run([attempt], talk)
    assert seen == [("one", ("one",), ("talk", "7")), ("two", ("one", "ONE", "two"), ("talk", "7"))]
    assert attempt.has_ended
    assert not attempt.error
    assert [_trace_id(span) for span in exported.get_finished_spans()] == attempt.trace_ids
    assert len(set(attempt.trace_ids)) == 2


def test_an_error_of_the_agent_ends_only_its_own_attempt(exported: InMemorySpanExporter) -> None:
    async def talk(message: str, context: RunContext) -> str:
        if context.case == "talk":
            raise AgentError("no such order")
        return "fine"

    bad, good = _attempted(TALK), _attempted({"id": "good", "inputs": {"task": "hi"}})
    assert _run([bad, good], talk)
    assert (bad.error, good.error) == ("no such order", "")
    assert len(bad.trace_ids) == 1
    failed = next(span for span in exported.get_finished_spans() if _trace_id(span) in bad.trace_ids)
    assert failed.attributes is not None
    assert failed.attributes["pandaeval.run.error"] == "no such order"
    assert failed.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert not failed.status.is_ok


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3)])
def test_a_cancel_or_exit_error_at_agent_start_does_not_interrupt_the_run(
    exported: InMemorySpanExporter, error: BaseException
) -> None:
    async def talk(message: str, context: RunContext) -> str:
        return "fine"

    def begin(attempt: Attempted) -> Talk:
        if attempt.case.id == "talk":
            raise error
        return talk

    attempts = [_attempted(TALK), _attempted({"id": "good", "inputs": {"task": "hi"}})]
    made = CaseAttempts(begin, Tracing("nowhere:1", here=False))
    assert asyncio.run(made.run(attempts))
    assert [each.has_ended for each in attempts] == [True, True]
    assert attempts[0].error.startswith(type(error).__name__)
    assert not attempts[1].error


def test_an_agent_that_cancels_itself_does_not_interrupt_the_run(exported: InMemorySpanExporter) -> None:
    async def talk(message: str, context: RunContext) -> str:
        raise asyncio.CancelledError("gave up")

    assert _run([attempt := _attempted(TALK)], talk)
    assert attempt.has_ended
    assert attempt.error == "CancelledError: gave up"


def test_a_long_error_is_cut(exported: InMemorySpanExporter) -> None:
    async def talk(message: str, context: RunContext) -> str:
        raise ValueError("x" * 5000)

    assert _run([bad := _attempted(TALK)], talk)
    assert bad.error.startswith("ValueError: xx")
    assert len(bad.error) == 2000


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ((0.01, 60.0), "the turn took longer than 0.01 s (--turn-timeout)"),
        ((60.0, 0.01), "the attempt took longer than 0.01 s (--case-timeout)"),
    ],
)
def test_turn_and_case_timeouts_end_an_attempt(
    exported: InMemorySpanExporter, limits: tuple[float, float], why: str
) -> None:
    async def talk(message: str, context: RunContext) -> str:
        await asyncio.Event().wait()
        return ""

    attempt = _attempted(TALK)
    assert _run([attempt], talk, *limits)
    assert attempt.error == why
    assert attempt.has_ended


def test_attempts_run_concurrently_up_to_the_limit(exported: InMemorySpanExporter) -> None:
    under_way = most = 0

    async def talk(message: str, context: RunContext) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        under_way -= 1
        return ""

    _run([_attempted(TALK, str(each)) for each in range(9)], talk, room=3)
    assert most == 3


def test_an_interrupted_run_keeps_finished_attempts(exported: InMemorySpanExporter) -> None:
    attempts = [_attempted({"id": name, "inputs": {"task": name}}) for name in ("quick", "endless")]
    waits = asyncio.Event()

    async def talk(message: str, context: RunContext) -> str:
        if message == "endless":
            waits.set()
            await asyncio.Event().wait()
        return "fine"

    async def interrupted() -> bool:
        made = CaseAttempts(lambda _: talk, Tracing("nowhere:1", here=False))
        task = asyncio.create_task(made.run(attempts))
        await waits.wait()
        while not attempts[0].has_ended:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        return await task

    assert not asyncio.run(interrupted())
    assert [attempt.has_ended for attempt in attempts] == [True, False]
    assert [_trace_id(span) for span in exported.get_finished_spans()] == attempts[0].trace_ids


def _trace_id(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


class _Plays:
    """A scripted user model."""

    def __init__(self, *replies: dict[str, str]) -> None:
        self._left = [json.dumps({"reason": "so", **reply}) for reply in replies]

    async def complete(self, call: ModelCall) -> ModelAnswer:
        return ModelAnswer(self._left.pop(0), 10, 5, 0.0)


ASKS = {"state": "going_on", "message": "money back"}
INVENTS = {"state": "going_on", "message": "order B-18"}


@pytest.mark.parametrize(
    ("replies", "how"),
    [((ASKS, {"state": "goal_met", "message": ""}), "goal_met"), ((ASKS, INVENTS, INVENTS), "failed")],
)
def test_a_failure_of_the_simulated_user_gets_its_own_trace(
    exported: InMemorySpanExporter, replies: tuple[dict[str, str], ...], how: str
) -> None:
    async def talk(message: str, context: RunContext) -> str:
        return "fine"

    attempt = _attempted({"id": "played", "scenario": {"goal": "the money"}})
    simulator = Simulator(_Plays(*replies), "m", "m, seed 0")
    made = CaseAttempts(lambda _: talk, Tracing("nowhere:1", here=False), simulator=simulator)
    assert asyncio.run(made.run([attempt]))
    assert attempt.how == how
    turn, *others = exported.get_finished_spans()
    assert [_trace_id(turn)] == attempt.trace_ids
    assert dict(turn.attributes or {})["pandaeval.simulator.ended"] == how
    assert [_trace_id(span) for span in others] == [attempt.spoilt_id][: how == "failed"]
    for span in others:
        assert "B-18" in str(dict(span.attributes or {})["pandaeval.simulator.failed"])


def test_an_agent_in_another_process_adds_no_span_processor_here(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[SpanProcessor] = []
    own = TracerProvider()
    monkeypatch.setattr(own, "add_span_processor", added.append)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: own)
    Tracing("localhost:1", here=False)
    assert not added, "an agent in another process does not use the providers here"


class _Records(SpanProcessor):
    def __init__(self, names: list[str]) -> None:
        self._names = names

    def on_end(self, span: ReadableSpan) -> None:
        self._names.append(span.name)


def test_all_tracer_providers_of_this_process_export_to_the_run_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(made_here, "PandaEvalSpanProcessor", lambda endpoint: _Records(sent))
    first, second = TracerProvider(), TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: first)
    monkeypatch.setattr(_logs, "get_logger_provider", LoggerProvider)
    for name in ("one", "two"):
        tracing = Tracing("localhost:1", here=True)
        for provider in (first, second):
            provider.get_tracer("own").start_span(name).end()
        tracing.close()
        second.get_tracer("own").start_span("late").end()
    assert sent == ["one", "one", "two", "two"]

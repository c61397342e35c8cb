"""Attempts at cases: concurrent conversations with the agent, with time limits.

Each turn is a trace that names case, trial, session and goal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import _logs, baggage, context, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanContext, Status, StatusCode

from pandaeval_lab.cases.model import Case
from pandaeval_lab.cases.trial import RUN_ERROR, RUN_SCOPE, SIMULATED, SIMULATOR_FAILED, TURN
from pandaeval_lab.running.agent import AgentError, RunContext, SendMessage, TurnLog
from pandaeval_lab.running.agent_replies import content_of
from pandaeval_lab.running.simulated import ENDED, SimulatedUser, Simulator
from pandaeval_lab.running.taps import Tap, connect
from pandaeval_otel import PandaEvalLogProcessor, PandaEvalSpanProcessor, using_case, using_session
from pandaeval_otel.base import semconv

_MESSAGES_ONLY = "The record has the messages only. Tool calls of the agent are not recorded."
_MOST_ANSWER, _MOST_ERROR = 4 << 20, 2000
"""Maximum characters of an answer and of an error."""


class Tracing:
    """Sends spans to a collector at ``endpoint``. ``here``: also the spans of this process's providers."""

    def __init__(self, endpoint: str, here: bool) -> None:
        self._spans = PandaEvalSpanProcessor(endpoint=endpoint)
        self._logs: PandaEvalLogProcessor | None = None
        self._taps: list[Tap] = []
        if here:
            self._logs = PandaEvalLogProcessor(endpoint=endpoint)
            provider = self._connected(self._logs)
        else:
            provider = TracerProvider()
            provider.add_span_processor(self._spans)
        self._tracer = provider.get_tracer(RUN_SCOPE)
        self.flush = self._spans.force_flush

    def _connected(self, logs: PandaEvalLogProcessor) -> TracerProvider:
        """Connect all providers of this process, and return the global provider of spans."""
        provider = trace.get_tracer_provider()
        if not isinstance(provider, TracerProvider):
            provider = TracerProvider()
            trace.set_tracer_provider(provider)
        if not isinstance(_logs.get_logger_provider(), LoggerProvider):
            _logs.set_logger_provider(LoggerProvider())
        self._taps += connect(TracerProvider, "add_span_processor", self._spans)
        self._taps += connect(LoggerProvider, "add_log_record_processor", logs)
        return provider

    def close(self) -> None:
        """Stop sending. Later spans of this process are dropped."""
        for tap in self._taps:
            tap.target = None
        self._spans.shutdown()
        if self._logs is not None:
            self._logs.shutdown()

    def record(self, turn: SentTurn, is_traced: bool) -> None:
        """Send the messages of a turn as an agent's span, and the calls that the runner made.

        ``is_traced``: these are all the agent's calls.
        """
        attributes: dict[str, Any] = {semconv.INPUT_MESSAGES: _said("user", turn.message)}
        attributes[semconv.OUTPUT_MESSAGES] = _said("assistant", turn.answer)
        if turn.log.status is not None:
            attributes["http.response.status_code"] = turn.log.status
        if not is_traced:
            attributes |= {semconv.PANDAEVAL_UNTRACED: True, semconv.PANDAEVAL_KNOWLEDGE: [_MESSAGES_ONLY]}
        with self._span("invoke_agent", turn.place, turn.start_ns, attributes, turn.end_ns) as span:
            for call in turn.log.calls:
                attributes = {semconv.TOOL_NAME: call.name, semconv.TOOL_CALL_ID: call.id}
                attributes[semconv.TOOL_ARGUMENTS] = content_of(call.arguments)
                if call.error:
                    attributes[semconv.ERROR_TYPE] = call.error
                else:
                    attributes[semconv.TOOL_RESULT] = content_of(call.result)
                with self._span(
                    "execute_tool", span.get_span_context(), call.start_ns, attributes, call.end_ns
                ) as tool:
                    if call.error:
                        tool.set_status(Status(StatusCode.ERROR, call.error))

    @contextmanager
    def _span(
        self, operation: str, parent: SpanContext, start_ns: int, attributes: Mapping[str, Any], end_ns: int
    ) -> Iterator[Span]:
        within = trace.set_span_in_context(trace.NonRecordingSpan(parent))
        marks = {semconv.OPERATION: operation, **attributes}
        span = self._tracer.start_span(operation, within, attributes=marks, start_time=start_ns)
        yield span
        span.end(end_ns)

    @contextmanager
    def turn(self, about: RunContext, marks: Mapping[str, Any]) -> Iterator[Span]:
        """Open a turn's first span, and make it current. The caller ends it."""
        carrying = baggage.set_baggage(TURN, str(about.turn))
        for name in (semconv.PANDAEVAL_GOAL, SIMULATED):
            carrying = baggage.set_baggage(name, str(marks[name]), carrying) if name in marks else carrying
        token = context.attach(carrying)
        session = using_session(about.session, propagate=True)
        case = using_case(about.case, about.trial, propagate=True)
        try:
            with session, case, trace.use_span(self._tracer.start_span(f"case {about.case}", attributes=marks)) as span:
                yield span
        finally:
            context.detach(token)


def fail(span: Span, message: str, why: str) -> None:
    """Record on a turn's first span why the agent gave no answer. It becomes an agent span."""
    input_messages = _said("user", message)
    span.set_attributes({semconv.OPERATION: "invoke_agent", semconv.INPUT_MESSAGES: input_messages, RUN_ERROR: why})
    span.set_status(Status(StatusCode.ERROR, why))


def _said(role: str, text: str) -> str:
    return content_of([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _trace_id(span: Span) -> str:
    return f"{span.get_span_context().trace_id:032x}"


class ScriptedUser:
    """A user with fixed messages, see :func:`messages_of`."""

    spoilt = ""

    def __init__(self, case: Case) -> None:
        self.marks: dict[str, Any] = {}
        self._left = iter(messages_of(case))

    async def next(self, answer: str | None) -> str | None:
        return next(self._left, None)


def messages_of(case: Case) -> tuple[str, ...]:
    """Return a case's user messages: the ``input`` of all interactions, else the recorded messages, else the task.

    Inputs count only if every interaction has an input.
    """
    inputs = tuple(each.input for each in case.interactions if each.input)
    if inputs and len(inputs) == len(case.interactions):
        return inputs
    recorded = case.recorded.messages if case.recorded is not None else ()
    if recorded and case.task in (None, recorded[0].strip()):
        return recorded
    return () if case.task is None else (case.task,)


@dataclass(frozen=True, slots=True)
class SentTurn:
    """An answered turn. ``place``: its first span; times in nanoseconds."""

    place: SpanContext
    message: str
    answer: str
    log: TurnLog
    start_ns: int
    end_ns: int

    @property
    def trace_id(self) -> str:
        return f"{self.place.trace_id:032x}"


@dataclass(slots=True)
class Attempted:
    """An attempt. ``agent``: its name. ``trace_ids``: of its turns; ``turns``: the answered turns.

    ``error``: why the agent did not finish. ``spoilt``: failure of the user's side, in trace ``spoilt_id``. ``how``:
    how a simulated user ended it. ``has_ended``: before an interruption.
    """

    case: Case
    trial: str
    session: str
    trace_ids: list[str] = field(default_factory=list)
    turns: list[SentTurn] = field(default_factory=list)
    agent: str = ""
    error: str = ""
    spoilt: str = ""
    spoilt_id: str = ""
    how: str = ""
    has_ended: bool = False

    @property
    def names(self) -> tuple[str, str, str]:
        """The case's ID, the trial and the session."""
        return self.case.id, self.trial, self.session


def _is_cancelled() -> bool:
    """Return whether this task was cancelled. An agent can also raise ``CancelledError`` itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def unless_interrupted(work: Awaitable[object]) -> bool:
    """Await work. Returns ``False`` after an interruption."""
    try:
        await work
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return False
    return True


@dataclass(frozen=True, slots=True)
class CaseAttempts:
    """Makes up to ``room`` attempts at a time, on an event loop.

    ``begin``: begins a conversation with the agent. ``turn_s``, ``case_s``: time limits in seconds; ``simulator``:
    plays users.
    """

    begin: Callable[[Attempted], SendMessage]
    tracing: Tracing
    turn_s: float = 120.0
    case_s: float = 600.0
    room: int = 4
    simulator: Simulator | None = None

    async def run(self, attempts: Sequence[Attempted], on_ended: Callable[[], None] = lambda: None) -> bool:
        """Make all attempts; ``on_ended`` follows each. Returns ``False`` after an interruption."""
        room = asyncio.Semaphore(self.room)

        async def make(attempt: Attempted) -> None:
            async with room:
                await self._converse(attempt)
            attempt.has_ended = True
            on_ended()

        return await unless_interrupted(asyncio.gather(*map(make, attempts)))

    async def _converse(self, attempt: Attempted) -> None:
        user = self._user(attempt)
        messages, talk = list[dict[str, str]](), None
        end = time.monotonic() + self.case_s
        message = await user.next(None)
        while message is not None:
            messages.append({"role": "user", "content": message})
            about = RunContext(*attempt.names, len(attempt.trace_ids), tuple(messages), attempt.case.inputs)
            with self.tracing.turn(about, user.marks) as span:
                attempt.trace_ids.append(_trace_id(span))
                started = time.time_ns()
                try:
                    talk = talk or self.begin(attempt)
                    answer = await self._answer(talk, message, about, end - time.monotonic())
                except (Exception, SystemExit, asyncio.CancelledError) as error:
                    if _is_cancelled():
                        raise
                    why = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
                    attempt.error = why[:_MOST_ERROR]
                ended = time.time_ns()
                if attempt.error:
                    fail(span, message, attempt.error)
                    message = None
                else:
                    attempt.turns.append(SentTurn(span.get_span_context(), message, answer, about.log, started, ended))
                    messages.append({"role": "assistant", "content": answer})
                    message = await user.next(answer)
                span.set_attributes(user.marks)
                span.end(ended)
        attempt.how = user.marks.get(ENDED, "")
        if user.spoilt:
            self._record_spoilt(attempt, user)

    def _user(self, attempt: Attempted) -> ScriptedUser | SimulatedUser:
        if self.simulator is None or attempt.case.scenario is None:
            return ScriptedUser(attempt.case)
        return SimulatedUser(self.simulator, attempt.case.scenario, int(attempt.trial))

    def _record_spoilt(self, attempt: Attempted, user: ScriptedUser | SimulatedUser) -> None:
        """Send a trace without content or an error, which represents the attempt."""
        attempt.spoilt = user.spoilt
        with self.tracing.turn(RunContext(*attempt.names, len(attempt.trace_ids)), user.marks) as span:
            attempt.spoilt_id = _trace_id(span)
            span.set_attributes({semconv.OPERATION: "invoke_agent", SIMULATOR_FAILED: user.spoilt})
            span.end()

    async def _answer(self, talk: SendMessage, message: str, about: RunContext, left: float) -> str:
        """Ask the agent. ``left``: seconds of the attempt. Raises :class:`AgentError`."""
        try:
            answer = await asyncio.wait_for(talk(message, about), max(0.0, min(self.turn_s, left)))
        except TimeoutError:
            limit = f"the attempt took longer than {self.case_s:g} s (--case-timeout)"
            if left >= self.turn_s:
                limit = f"the turn took longer than {self.turn_s:g} s (--turn-timeout)"
            raise AgentError(limit) from None
        if len(answer) > _MOST_ANSWER:
            raise AgentError(f"the answer has {len(answer):,} characters; the limit is {_MOST_ANSWER:,}")
        return answer

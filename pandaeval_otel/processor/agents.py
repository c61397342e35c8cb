"""Opens the root span of a hand-written agent's turn, so that the model calls and tools of the turn are one trace.

SDK instrumentations make a span of each model call. Without an open span around them, each is a trace of its own: four
questions become a dozen traces, and none of them shows what the agent did.
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from types import TracebackType

from opentelemetry import trace
from opentelemetry.trace import Span, TracerProvider

from pandaeval_otel.base import semconv
from pandaeval_otel.processor.context import Around, Function

_INVOKE_AGENT = "invoke_agent"


def agent_turn(name: str, *, tracer_provider: TracerProvider | None = None) -> AgentTurn:
    """Opens the span ``invoke_agent {name}`` around the agent's work for one message of a user.

    Returns a context manager that gives the :class:`opentelemetry.trace.Span`, and a decorator of functions and
    coroutine functions. Spans that start inside are its children; its parent is the current span, such as a web
    server's, if there is one. An exception that leaves it is recorded on the span, which gets status ERROR, and
    propagates.

    ``tracer_provider``: default the global one when the span starts. Raises ``TypeError`` as a decorator of a generator
    function: the span would be current in the caller's code between two steps.
    """
    return AgentTurn(name, tracer_provider)


class AgentTurn(Around):
    """The return value of :func:`agent_turn`. Each use opens a span of its own. One object may be used again and
    nested, but not by two threads at once; decorated functions may run on any thread."""

    def __init__(self, name: str, tracer_provider: TracerProvider | None) -> None:
        self._name, self._provider = name, tracer_provider
        self._open: list[AbstractContextManager[Span]] = []

    def __enter__(self) -> Span:
        tracer = trace.get_tracer("pandaeval_otel", tracer_provider=self._provider)
        attributes = {semconv.OPERATION: _INVOKE_AGENT, semconv.AGENT_NAME: self._name}
        span = tracer.start_as_current_span(f"{_INVOKE_AGENT} {self._name}", attributes=attributes)
        entered = span.__enter__()
        self._open.append(span)
        return entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.pop().__exit__(kind, error, traceback)

    def __call__(self, function: Function) -> Function:
        """Decorates a function or a coroutine function."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"agent_turn cannot decorate the generator {function.__name__}: use it with `with` inside")
        return super().__call__(function)

    def _again(self) -> AgentTurn:
        return AgentTurn(self._name, self._provider)

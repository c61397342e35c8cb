"""Sets session, user, test case and trial of the following spans.

Each ``using_…`` is a context manager and a decorator of functions and coroutine functions. Another thread sees the ids
in a copy of the context, as with ``asyncio.to_thread``, or in a decorated function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import WeakSet

import opentelemetry.context as context_api
from opentelemetry import baggage, trace
from opentelemetry.trace import Span, TracerProvider

from pandaeval_otel.base import semconv
from pandaeval_otel.processor._scope import NOTHING, SCOPE, ContextIds, scope_in

if TYPE_CHECKING:
    from pandaeval_otel.processor.forwarder import Forwarder


Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")

# OpenTelemetry's detach() logs an error if a generator is closed in a different context.
_runtime: Any = getattr(context_api, "_RUNTIME_CONTEXT", context_api)


def using_session(session: str, *, propagate: bool = False) -> Around[None]:
    """Assign spans that start inside to ``session``, overriding framework ids.

    ``propagate``: also add the id to baggage. Instrumented clients send baggage to every server.

    >>> with using_session("chat-17"), using_user("ada"), agent_turn("shop") as span:
    ...     session_end()
    """
    return Around(lambda: Using(propagate, session=str(session)))


def using_user(user: str, *, propagate: bool = False) -> Around[None]:
    """Mark spans that start inside as work for ``user``. ``propagate``: as in :func:`using_session`."""
    return Around(lambda: Using(propagate, user=str(user)))


def using_case(case: str, trial: str | int = "", *, propagate: bool = False) -> Around[None]:
    """Assign spans that start inside to a ``trial`` (number or name) of the test ``case``.

    ``propagate``: as in :func:`using_session`.

    >>> using_case("refund", trial=1)(lambda: "refunded")()
    'refunded'
    """
    return Around(lambda: Using(propagate, case=str(case), trial=str(trial)))


def session_end(session: str | None = None) -> None:
    """End a session (default: the current session), so that the collector scores it without an idle wait.

    Inside a trace, takes effect when the trace is complete. Outside, takes effect when all earlier traces are complete.
    No effect without a processor or known session. Never blocks or raises.
    """
    named = session or scope_in(context_api.get_current()).session
    if named:
        trace_id = trace.get_current_span().get_span_context().trace_id
        for listener in list(SESSION_LISTENERS):
            listener.session_ended(named, trace_id)


SESSION_LISTENERS: WeakSet[Forwarder] = WeakSet()


class Around(Generic[Value]):
    """A reusable context manager and decorator. It may be nested, but not entered by two threads or tasks at once."""

    def __init__(self, make: Callable[[], AbstractContextManager[Value]]) -> None:
        self._make = make
        self._open: list[AbstractContextManager[Value]] = []

    def __enter__(self) -> Value:
        context = self._make()
        value = context.__enter__()
        self._open.append(context)
        return value

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, function: Function) -> Function:
        """Decorate a function or coroutine function. Raises ``TypeError`` for a generator function."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__name__} is a generator: use `with` around the loop that reads it")

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._make():
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with self._make():
                return await function(*args, **kwargs)

        return cast(Function, coroutine if inspect.iscoroutinefunction(function) else wrapper)


class Using:
    """Sets ids in the current context, once."""

    def __init__(self, propagate: bool, **ids: str) -> None:
        self._ids: dict[str, Any] = {**ids}
        self._propagate = propagate

    def __enter__(self) -> None:
        context = context_api.get_current()
        scope = context.get(SCOPE)
        whole = replace(scope if isinstance(scope, ContextIds) else NOTHING, **self._ids)
        context = context_api.set_value(SCOPE, whole, context)
        if self._propagate:
            for name, value in replace(NOTHING, **self._ids).attributes.items():
                context = baggage.set_baggage(name, value, context)
        self._token = context_api.attach(context)

    def __exit__(self, *_: object) -> None:
        try:
            _runtime.detach(self._token)
        except ValueError:
            # Entered in a generator that is closed in another context, which never had our value.
            return


# Opens the root span of a hand-written agent's turn, so that the model calls and tools of the turn are one trace.
#
# SDK instrumentations make a span of each model call. Without an open span around them, each is a trace of its own:
# four questions become a dozen traces, and none of them shows what the agent did.
_INVOKE_AGENT = "invoke_agent"


def agent_turn(name: str, *, tracer_provider: TracerProvider | None = None) -> Around[Span]:
    """Open the span ``invoke_agent {name}`` around the agent's work for a user message.

    Returns a context manager that yields the :class:`opentelemetry.trace.Span`, also a decorator of functions and
    coroutine functions. Its parent is the current span. An escaping exception is recorded, sets status ERROR and
    propagates.

    ``tracer_provider``: default is the global provider at the start of the span.
    """

    def start() -> AbstractContextManager[Span]:
        tracer = trace.get_tracer("pandaeval_otel", tracer_provider=tracer_provider)
        attributes = {semconv.OPERATION: _INVOKE_AGENT, semconv.AGENT_NAME: name}
        return tracer.start_as_current_span(f"{_INVOKE_AGENT} {name}", attributes=attributes)

    return Around(start)

"""The agent under test: a Python function, coroutine or object, or an HTTP address."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.modules import ModuleLoadError, load_module
from pandaeval_collector.base.untrusted.printable import excerpt


class AgentError(Exception):
    """The agent gave no answer. The text has the reason."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """An agent's view of an attempt.

    ``messages``: ``{"role": "user" | "assistant", "content": text}``, with this message; ``turn``: from 0.
    """

    case: str
    trial: str
    session: str
    turn: int
    messages: tuple[Mapping[str, str], ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)


Talk = Callable[[str, RunContext], Awaitable[str]]
"""Puts a message to the agent and returns its answer. Raises :class:`AgentError`."""
Agent = Callable[[], Talk]
"""Begins a conversation; raises what the constructor of the user's class raises."""


def python_agent(agent: str | Any) -> Agent:
    """Load ``module:name`` or ``./file.py:name``, or take an object. A class gets an instance per trial.

    Raises ``UserError``.
    """
    target = _loaded(agent) if isinstance(agent, str) else agent
    called: Any = getattr(target, "send", target)
    if not callable(called) or not _positional(called):
        name = str(agent).rpartition(":")[2]
        what = f"there is no {name}" if target is None else f"{name} is no agent"
        raise UserError(f"--agent {agent}: {what}; write def {name}(message, context) -> str, or an object with a send")
    return lambda: partial(_call, target().send if isinstance(target, type) else called)


def _loaded(spec: str) -> Any:
    module, _, name = spec.rpartition(":")
    if not module:
        raise UserError(f"--agent {spec}: name the function too, as in {spec}:answer")
    sys.path[:0] = [] if os.getcwd() in sys.path else [os.getcwd()]
    try:
        return getattr(load_module(module), name, None)
    except ModuleLoadError as error:
        raise UserError(f"--agent {spec}: {error}; write module:function, or an address with http://") from error


def _positional(called: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(called).parameters.items()
    return [name for name, each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


async def _call(called: Callable[..., Any], message: str, context: RunContext) -> str:
    names = _positional(called)
    first: Any = [dict(each) for each in context.messages] if names[0] == "messages" else message
    work = partial(called, *(first, context)[: len(names)])
    try:
        answer = work() if inspect.iscoroutinefunction(called) else await _in_thread(work)
        answer = await answer if inspect.isawaitable(answer) else answer
    except (Exception, SystemExit) as error:  # the agent is the user's code, which may raise whatever it likes
        raise AgentError(f"{type(error).__name__}: {error}") from error
    if not isinstance(answer, str):
        raise AgentError(f"it returned {type(answer).__name__} in place of a text: return the answer as str")
    return answer


async def _in_thread(work: Callable[[], Any]) -> Any:
    context, done = contextvars.copy_context(), Future[Any]()
    done.set_running_or_notify_cancel()  # from now on nobody takes it back

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - raised by who waits
            done.set_exception(error)

    threading.Thread(target=run, name="pandaeval-agent", daemon=True).start()
    return await asyncio.wrap_future(done)


def http_agent(url: str, held: AsyncExitStack) -> Agent:
    """Return an agent at an address, called by a POST per turn with ``traceparent`` and ``baggage``, while ``held`` is
    open.

    An address ending in ``/chat/completions`` gets OpenAI's request; others get ``{"message", "messages", "session",
    "case", "trial", "turn", "inputs"}``. The answer is ``{"answer": text}`` or OpenAI's.
    """
    parts = urlsplit(url)
    # A proxy for the internet knows no agent on this machine; the time limit of a turn is the caller's.
    client = httpx.AsyncClient(timeout=None, trust_env=parts.hostname not in ("localhost", "127.0.0.1"))  # noqa: S113
    held.push_async_callback(client.aclose)

    async def ask(message: str, context: RunContext) -> str:
        headers: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(headers)
        W3CBaggagePropagator().inject(headers)
        about = {name: getattr(context, name) for name in ("session", "case", "trial", "turn", "inputs")}
        body = {"model": "agent"} if parts.path.endswith("/chat/completions") else {"message": message, **about}
        try:
            reply = await client.post(url, json={**body, "messages": context.messages}, headers=headers)
        except httpx.HTTPError as error:
            raise AgentError(f"{url} cannot be reached: {type(error).__name__}: {error}") from error
        with suppress(ValueError, LookupError, TypeError):
            held = {} if reply.is_error else reply.json()
            answer = held["answer"] if "answer" in held else held["choices"][0]["message"]["content"]
            if isinstance(answer, str):
                return answer
        shown = f"{url} answered {reply.status_code}: {excerpt(reply.text, 200)}"
        raise AgentError(f'{shown}; answer {{"answer": text}}, or as OpenAI chat completions do')

    return lambda: ask

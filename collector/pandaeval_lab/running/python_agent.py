"""An agent that is a Python function, coroutine function, object or class."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.modules import ModuleLoadError, load_module
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.running.agent import Agent, AgentError, RunContext
from pandaeval_lab.running.agent_replies import AgentReply, reply_of
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_lab.running.tool_loop import Message, ToolRounds


def python_agent(entry: AgentEntry, replies: MockReplies) -> Agent:
    """Load ``module:name`` or ``./file.py:name``. Raises ``UserError``."""
    spec = entry.python or ""
    module, _, name = spec.rpartition(":")
    if not module:
        raise UserError(f"--agent {spec}: name the function too, as in {spec}:answer")
    sys.path[:0] = [] if os.getcwd() in sys.path else [os.getcwd()]
    try:
        target = getattr(load_module(module), name, None)
    except ModuleLoadError as error:
        raise UserError(f"--agent {spec}: {error}; write module:function, or an address with http://") from error
    return object_agent(target, spec, replies)


def object_agent(target: Any, spec: str, replies: MockReplies) -> Agent:
    """Take a function or object; a class gets an instance per trial. Raises ``UserError``."""
    name, called = spec.rpartition(":")[2], getattr(target, "send", target)
    if not callable(called) or not _positional(called):
        what = f"there is no {name}" if target is None else f"{name} is not an agent"
        raise UserError(
            f"--agent {spec}: {what}; write def {name}(message, context) -> str, or an object with the method send"
        )
    return lambda: ToolRounds(partial(_call, target().send if isinstance(target, type) else called), replies)


def _positional(called: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(called).parameters.items()
    return [name for name, each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


async def _call(
    called: Callable[..., Any], message: str, messages: Sequence[Message], context: RunContext
) -> AgentReply:
    names = _positional(called)
    first: Any = [dict(each) for each in messages] if names[0] == "messages" else message
    work = partial(called, *(first, context)[: len(names)])
    try:
        answer = work() if inspect.iscoroutinefunction(called) else await _in_thread(work)
        answer = await answer if inspect.isawaitable(answer) else answer
    except (Exception, SystemExit) as error:  # the agent is the user's code, which can raise any exception
        raise AgentError(f"{type(error).__name__}: {error}") from error
    if isinstance(answer, Mapping) and answer.get("tool_calls"):
        return reply_of(answer, "content")
    if not isinstance(answer, str):
        raise AgentError(f"it returned {type(answer).__name__} instead of a text; return the answer as str")
    return AgentReply(answer)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run blocking work on a thread that is abandoned at timeout or exit."""
    context, done = contextvars.copy_context(), Future[Any]()
    done.set_running_or_notify_cancel()  # from now on, it cannot be cancelled

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - the waiting thread raises it
            done.set_exception(error)

    threading.Thread(target=run, name="pandaeval-agent", daemon=True).start()
    return await asyncio.wrap_future(done)

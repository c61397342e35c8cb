"""``mocked``: tools of a Python agent that answer from a case's mocks. Light to import in production."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pandaeval_lab.cases.mocks import MockAnswer
    from pandaeval_lab.running.mock_replies import MockReplies

SUITE = "PANDAEVAL_MOCKS"
_INJECTED = re.compile(r"\b(Injected\w*|RunnableConfig|ToolRuntime|RunContext\w*|ToolContext)\b")
"""Type names that mark a parameter which the framework fills, and which the model does not see."""
Tool = TypeVar("Tool", bound=Callable[..., Any])


class MockedToolError(Exception):
    """A mocked error, or a call without a matching mock. The text is for the agent."""


def mocked(tool: Tool) -> Tool:
    """Wrap a tool (function or coroutine function), keeping name, signature and docstring. During ``pandaeval cases
    run``, a case's mocks answer; otherwise the tool does.

    A server with OpenTelemetry baggage gets cases from ``PANDAEVAL_MOCKS=suite.yaml``. With mocks, calls outside a case
    fail. These calls, unmatched calls and mocked errors raise :class:`MockedToolError`. Raises ``TypeError`` for other
    objects.

    >>> @mocked
    ... def find_order(order: int) -> str:
    ...     return f"order {order} is on its way"
    >>> find_order(17)
    'order 17 is on its way'
    """
    if not inspect.isroutine(tool):
        raise TypeError(
            "mocked takes a function: write @mocked below the decorator with which your framework makes a tool"
        )
    signature = inspect.signature(tool)
    parameters = signature.parameters.items()
    rest = {"self", *(name for name, each in parameters if each.kind is each.VAR_KEYWORD)}
    rest |= {name for name, each in parameters if _INJECTED.search(str(each.annotation))}
    defaults = {name: each.default for name, each in parameters if name not in rest and each.default is not each.empty}

    def reply(args: tuple[Any, ...], kwargs: dict[str, Any]) -> MockAnswer | None:
        if (replies := _replies or _of_environment()) is None:
            return None
        bound = signature.bind(*args, **kwargs)
        given = {name: value for name, value in {**bound.arguments, **bound.kwargs}.items() if name not in rest}
        found = replies.reply(tool.__name__, given, defaults)
        return None if found.kind == "passed" else found

    @functools.wraps(tool)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (found := reply(args, kwargs)) is None:
            return tool(*args, **kwargs)
        time.sleep(found.delay_s)
        return _result(found)

    @functools.wraps(tool)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        if (found := await asyncio.to_thread(reply, args, kwargs)) is None:
            return await tool(*args, **kwargs)
        await asyncio.sleep(found.delay_s)
        return _result(found)

    return cast(Tool, coroutine if inspect.iscoroutinefunction(tool) else call)


_replies: MockReplies | None = None


def use_mocks(replies: MockReplies | None) -> None:
    global _replies
    _replies = replies


@cache
def _of_environment() -> MockReplies | None:
    if SUITE not in os.environ:
        return None
    from pandaeval_lab.cases.files import read_suite
    from pandaeval_lab.running.mock_replies import MockReplies

    return MockReplies(read_suite(Path(os.environ[SUITE])).cases)


def _result(reply: MockAnswer) -> Any:
    if reply.error:
        raise MockedToolError(reply.error)
    return reply.result

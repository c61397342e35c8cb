"""Answers tool calls from the mocks of a case."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import isawaitable, signature
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from pandaeval_lab.cases.arguments import same
from pandaeval_lab.cases.model import Case, ExpectedCall, Mock
from pandaeval_lab.cases.trial import function

_MOST_TOLD = 2000
"""Maximum characters of a call's arguments and of its result in a report. Spans contain all characters."""


@dataclass(frozen=True, slots=True)
class MockAnswer:
    """The answer to a call.

    ``kind``: ``result``; ``error``; ``refused``, if no mock matches; ``passed`` to the tool. ``delay_s``: seconds.
    """

    kind: Literal["result", "error", "refused", "passed"]
    result: Any = None
    error: str = ""
    delay_s: float = 0.0

    def told(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        answer = {"error": self.error} if self.error else {"result": _cut(self.result)}
        return {"tool": tool, "arguments": _cut(arguments), "kind": self.kind} | (
            {} if self.kind == "passed" else answer
        )


@dataclass(frozen=True, slots=True)
class MockContext:
    """The place of a call in an attempt. ``turn``: from 0. ``call``: number of earlier calls of the same tool."""

    case: str
    trial: str = ""
    session: str = ""
    turn: int = 0
    call: int = 0


class Mocks:
    """The mocks of a case during an attempt. Thread-safe."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.by_tool = {tool: [(mock, False) for mock in several] for tool, several in case.mocks.items()}
        """The mocks of each tool in order, and whether all arguments must equal those of a recorded call."""
        calls = case.recorded.calls if case.unmocked == "recorded" and case.recorded is not None else ()
        keys = [(call.tool_name, json.dumps(call.parameters, sort_keys=True)) for call in calls]
        left = Counter(keys)
        for key, call in zip(keys, calls, strict=True):
            left[key] -= 1
            # A failed tool usually reported the failure in its result, which the agent saw.
            answer = {"error": call.error} if call.result is None and call.error else {"result": call.result}
            is_known = isinstance(call.parameters, dict)
            when, times = call.parameters if is_known else {}, 1 if left[key] else None
            mock = Mock.model_validate({**answer, "when": when, "times": times})
            self.by_tool.setdefault(call.tool_name, []).append((mock, is_known))
        self._used: Counter[int] = Counter()
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reply(
        self,
        tool: str,
        given: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        place: MockContext | None = None,
    ) -> MockAnswer:
        with self._lock:
            call = self._calls[tool]
            self._calls[tool] += 1
        if (found := self._fitting(tool, _plain({**(defaults or {}), **given}), _plain(defaults or {}))) is None:
            if self._case.unmocked == "pass":
                return MockAnswer("passed")
            error_text = f"{tool}: no mock of case {self._case.id} fits {json.dumps(_plain(given), ensure_ascii=False)}"
            return MockAnswer("refused", error=f"{error_text}; add a mock to mocks.{tool}, or set unmocked: pass")
        mock, before = found
        if mock.error is not None:
            return MockAnswer("error", error=mock.error, delay_s=mock.delay)
        result = mock.results[min(before, len(mock.results) - 1)] if mock.results else mock.result
        if mock.function is not None:
            try:
                context = replace(place or MockContext(self._case.id), call=call)
                result = _called(function(mock.function), given, context)
            except Exception as error:  # noqa: BLE001 - the agent receives the error of the user's code
                return MockAnswer("error", error=f"{type(error).__name__}: {error}", delay_s=mock.delay)
        return MockAnswer("result", deepcopy(result), delay_s=mock.delay)  # a copy, because the agent can change it

    def has(self, call: ExpectedCall) -> bool:
        several = self.by_tool.get(call.tool_name, ())
        return any(call.parameters is None or _fits(*each, call.parameters, {}) for each in several)

    def _fitting(self, tool: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[Mock, int] | None:
        with self._lock:
            for mock, is_recorded in self.by_tool.get(tool, ()):
                before = self._used[id(mock)]
                if before != mock.times and _fits(mock, is_recorded, given, defaults):
                    self._used[id(mock)] += 1
                    return mock, before
        return None


def _called(mock: Callable[..., Any], given: Mapping[str, Any], context: MockContext) -> Any:
    """Call a mock's function, with ``context`` if it has this parameter. Wait for a coroutine on a thread."""
    has_context = "context" in signature(mock).parameters and "context" not in given
    result = mock(**given, **({"context": context} if has_context else {}))
    if not isawaitable(result):
        return result

    async def wait() -> Any:
        return await result

    with ThreadPoolExecutor(1) as thread:  # this thread can have a running event loop
        return thread.submit(copy_context().run, asyncio.run, wait()).result()


def _fits(mock: Mock, is_recorded: bool, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    if is_recorded:  # all arguments must be equal
        return same({**defaults, **mock.when}, given)
    return all(name in given and same(value, given[name]) for name, value in mock.when.items())


def _plain(value: Any) -> Any:
    return to_jsonable_python(value, bytes_mode="base64", fallback=str)


def _cut(value: Any) -> Any:
    text = json.dumps(plain := _plain(value), ensure_ascii=False)
    return plain if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]}…"

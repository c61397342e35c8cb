"""Answers tool calls from the mocks of the case and attempt in the baggage."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import baggage, trace

from pandaeval_lab.cases.mocks import MockAnswer, MockContext, Mocks
from pandaeval_lab.cases.model import Case
from pandaeval_lab.cases.trial import MOCK_CALLS, TURN
from pandaeval_otel.base import semconv
from pandaeval_otel.base.names import bounded

_NO_TOOL = "no mock matches, and the runner has no tool of this name; add a result to mocks"


class MockReplies:
    def __init__(self, cases: Sequence[Case], default: str = "") -> None:
        """``default``: ID of the case if baggage names no case."""
        self._cases, self._default = {bounded(case.id): case for case in cases}, default
        self._attempts: dict[tuple[str, str], Mocks] = {}
        self._lock = threading.Lock()

    async def answer(self, tool: str, given: Mapping[str, Any]) -> MockAnswer:
        """Answer a call of a tool that has only mocks, after the delay of the mock."""
        reply = await asyncio.to_thread(self.reply, tool, given)
        if reply.kind == "passed":
            reply = MockAnswer("refused", error=f"{tool}: {_NO_TOOL}")
        await asyncio.sleep(reply.delay_s)
        return reply

    def reply(self, tool: str, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> MockAnswer:
        named = bounded(str(baggage.get_baggage(semconv.PANDAEVAL_CASE_ID) or self._default))
        case, attempt = self._cases.get(named), (named, str(baggage.get_baggage(semconv.PANDAEVAL_SESSION_ID)))
        if case is None:
            cure = "propagate OpenTelemetry's context to the tool call (threads, baggage of requests)"
            why = f"there is no case {named}" if named else f"the case of the call is unknown: {cure}"
            reply = MockAnswer("refused", error=f"{tool}: {why}")
        elif not case.is_mocked:
            return MockAnswer("passed")
        else:
            mocks = self._attempts.get(attempt) or self._attempts.setdefault(attempt, Mocks(case))
            trial, turn = (baggage.get_baggage(name) for name in (semconv.PANDAEVAL_TRIAL, TURN))
            place = MockContext(case.id, str(trial or ""), attempt[1], int(str(turn or 0)))
            reply = mocks.reply(tool, given, defaults, place)
        span = trace.get_current_span()
        with self._lock:  # concurrent calls can share a span
            before = (getattr(span, "attributes", None) or {}).get(MOCK_CALLS, ())
            span.set_attribute(MOCK_CALLS, [*before, json.dumps(reply.told(tool, given), ensure_ascii=False)])
        return reply

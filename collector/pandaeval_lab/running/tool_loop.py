"""Makes the tool calls that an agent's replies request, with the mocks of the case."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pandaeval_lab.running.agent import AgentError, MadeCall, RunContext
from pandaeval_lab.running.agent_replies import AgentReply, RequestedCall, content_of
from pandaeval_lab.running.mock_replies import MockReplies

MOST_ROUNDS = 20
"""Maximum number of replies in a turn that request tool calls."""
Message = Mapping[str, Any]
Ask = Callable[[str, Sequence[Message], RunContext], Awaitable[AgentReply]]


class ToolRounds:
    """A conversation with an agent. The replies of its tools stay in the messages of later turns."""

    def __init__(self, ask: Ask, replies: MockReplies) -> None:
        self._ask, self._replies = ask, replies
        self._messages: list[Message] = []

    async def __call__(self, message: str, context: RunContext) -> str:
        self._messages += context.messages[-1:] if self._messages else context.messages
        for _ in range(MOST_ROUNDS + 1):
            reply = await self._ask(message, [*self._messages], context)
            if not reply.calls:
                answer = reply.text or ""
                self._messages.append({"role": "assistant", "content": answer})
                return answer
            requests = [call.to_dict() for call in reply.calls]
            self._messages.append({"role": "assistant", "content": reply.text, "tool_calls": requests})
            for call in reply.calls:
                content = await self._made(call, context)
                self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        raise AgentError(f"more than {MOST_ROUNDS} replies of a turn called tools; check whether mocks lack a result")

    async def _made(self, call: RequestedCall, context: RunContext) -> str:
        start = time.time_ns()
        if isinstance(call.arguments, Mapping):
            answer = await self._replies.answer(call.name, call.arguments)
            result, error = answer.result, answer.error
        else:
            result, error = None, f"{call.name}: the arguments are not a JSON object: {call.arguments!r:.200}"
        made = MadeCall(call.id, call.name, call.arguments, result, error, start, time.time_ns())
        context.log.calls.append(made)
        if error:
            return content_of({"error": error})
        return content_of(result)

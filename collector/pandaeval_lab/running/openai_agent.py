"""An OpenAI-compatible endpoint as the agent. It gets the tools of the case, and the runner makes its calls."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.cases.mocks import offered
from pandaeval_lab.running.agent import Agent, RunContext
from pandaeval_lab.running.agent_replies import AgentReply
from pandaeval_lab.running.http_agent import COMPLETIONS, client_for, posted
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_lab.running.templates import filled
from pandaeval_lab.running.tool_loop import Message, ToolRounds


def openai_agent(entry: AgentEntry, held: AsyncExitStack, replies: MockReplies) -> Agent:
    """Return an agent that is a model at ``entry.openai``; ``entry.body`` adds to the request, such as temperature."""
    url = (entry.openai or "").rstrip("/").removesuffix(COMPLETIONS) + COMPLETIONS
    client = client_for(url, held)

    async def ask(message: str, messages: Sequence[Message], context: RunContext) -> AgentReply:
        case = replies.case(context.case)
        tools = [{"type": "function", "function": tool.model_dump()} for tool in offered(case)] if case else []
        body: dict[str, Any] = {"model": entry.model, "messages": messages, **({"tools": tools} if tools else {})}
        return await posted(client, url, {**body, **filled(entry.body, {"messages": messages})}, entry, context)

    return lambda: ToolRounds(ask, replies)

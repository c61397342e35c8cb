"""An agent at an HTTP address."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.running.agent import Agent, AgentError, RunContext
from pandaeval_lab.running.agent_replies import AgentReply, read_reply
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_lab.running.templates import filled
from pandaeval_lab.running.tool_loop import Message, ToolRounds

_COMPLETIONS = "/chat/completions"
MOST_BYTES = 4 << 20
"""Maximum size of a response."""
_ABOUT = ("session", "case", "trial", "turn", "inputs")


def http_agent(entry: AgentEntry, held: AsyncExitStack, replies: MockReplies) -> Agent:
    """Return an agent that gets a POST per turn, with ``traceparent`` and ``baggage``, while ``held`` is open.

    An address ending in ``/chat/completions`` gets OpenAI's request, with the fields of ``body``. Without ``body``,
    another address gets ``{"message", "messages", "session", "case", "trial", "turn", "inputs"}``. The reply is
    ``{"answer": text}`` or an OpenAI chat completion, or requests tool calls (``tool_calls``).
    """
    url = entry.url or ""
    # A proxy for the internet cannot reach an agent on this machine. The caller has a time limit.
    trusts = urlsplit(url).hostname not in ("localhost", "127.0.0.1")
    client = httpx.AsyncClient(timeout=None, trust_env=trusts)  # noqa: S113
    held.push_async_callback(client.aclose)

    async def ask(message: str, messages: Sequence[Message], context: RunContext) -> AgentReply:
        about = {name: getattr(context, name) for name in _ABOUT}
        body = filled(_template(entry, url), {**about, "message": message, "messages": messages})
        return await _posted(client, url, body, entry, context)

    return lambda: ToolRounds(ask, replies)


def _template(entry: AgentEntry, url: str) -> Any:
    if urlsplit(url).path.endswith(_COMPLETIONS):
        return {"model": "agent", "messages": "{messages}", **entry.body}
    return entry.body or {name: f"{{{name}}}" for name in ("message", *_ABOUT, "messages")}


async def _posted(client: httpx.AsyncClient, url: str, body: Any, entry: AgentEntry, context: RunContext) -> AgentReply:
    """Post a request and read the reply. Raises :class:`AgentError`."""
    place = entry.place
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    W3CBaggagePropagator().inject(headers)
    try:
        async with client.stream("POST", url, json=body, headers={**headers, **entry.headers}) as response:
            context.log.status = response.status_code
            response_body = await _body(response, place)
    except httpx.LocalProtocolError:  # the error's text contains the value of the header
        raise AgentError(f"{place}: a header has a character that HTTP does not allow") from None
    except httpx.HTTPError as error:
        raise AgentError(f"{place} cannot be reached: {type(error).__name__}: {error}") from error
    if not response.is_error:
        reply = read_reply(response_body, response.headers.get("content-type", ""), entry.answer)
        if reply.text is not None or reply.calls:
            return reply
    shown = f"{place} answered {response.status_code}: {excerpt(response_body, 200)}"
    cure = f"a text at {entry.answer}" if entry.answer else '{"answer": text}, or an OpenAI chat completion'
    raise AgentError(f"{shown}; return JSON with {cure}")


async def _body(response: httpx.Response, place: str) -> str:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MOST_BYTES:
            raise AgentError(f"{place} sent more than {MOST_BYTES >> 20} MiB")
    return body.decode(errors="replace")

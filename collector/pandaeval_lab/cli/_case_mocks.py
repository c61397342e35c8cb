"""``pandaeval cases mcp`` and ``cases stub``: mocks for agents that call their tools over a protocol."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from opentelemetry import context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._options import file_argument, option
from pandaeval_collector.cli._output import message
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.mocks import MockAnswer, offered
from pandaeval_lab.cases.trial import MOCK_SCOPE
from pandaeval_lab.cli._cases import no_case
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_otel import PandaEvalSpanProcessor

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

_SUITE = "Case file (YAML or JSON)."
_STATUS = {"result": 200, "error": 500, "refused": 404}
_MOST_BYTES = 4 << 20
"""The largest body of a call."""
_HOSTS = ("host.docker.internal",)
"""Names under which containers reach this machine."""
_OWN_PAGES = "web pages of other origins may not call mocks; programs call them under 127.0.0.1 or localhost"


def mcp(
    suite: Annotated[Path, file_argument(_SUITE)],
    case: Annotated[str, option("ID of the case that provides the tools.", metavar="CASE")],
) -> None:
    """Serve the mocked tools of a case over MCP (stdio).

    The command prints each call on standard error."""
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    answers = _Answers(suite, case)
    of = answers.cases[case]

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        tools = [types.Tool(name=t.name, description=t.description, input_schema=t.parameters) for t in offered(of)]
        return types.ListToolsResult(tools=tools)

    async def call_tool(asked: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        reply = await answers.reply(call.name, call.arguments or {}, asked.meta or {})
        said = reply.error or reply.result
        text = said if isinstance(said, str) else _json(said)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=bool(reply.error))

    async def serve() -> None:
        server = Server("pandaeval-mocks", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())


def stub(
    suite: Annotated[Path, file_argument(_SUITE)],
    case: Annotated[str | None, option("ID of the case for calls without baggage.", metavar="CASE")] = None,
    port: Annotated[int, option("Local port. 0 means any free port.", min=0, max=65535)] = 4330,
) -> None:
    """Serve the mocked tools of cases over HTTP.

    For POST /TOOL with a JSON body, the mocks of the case that the baggage names give the answer. The command prints
    each call.

    Status 200 has the result. Status 500 has the error of a mock. Status 404: no mock matches. Errors have the
    form {"error": text}.
    """
    import uvicorn

    app = stub_app(suite, case)
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError as error:
            raise UserError(f"--port {port}: {error.strerror}; name another port, or 0 for any free port") from error
        message(f"http://127.0.0.1:{listener.getsockname()[1]}/TOOL is served; press Ctrl-C to stop.")
        uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off")).run([listener])


def stub_app(suite: Path, case: str | None) -> ASGIApp:
    """Return the application of :func:`stub`. It refuses cross-site requests and large bodies."""
    from pydantic_core import from_json
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from pandaeval_collector.show.api.writing import OwnWrites
    from pandaeval_collector.show.listener import KnownHosts

    answers = _Answers(suite, case)

    async def answer(request: Request) -> Response:
        try:
            arguments = from_json(await request.body())  # raises ValueError for deep nesting and half characters, too
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return Response('{"error": "send the arguments as a JSON object"}', 400)
        reply = await answers.reply(request.path_params["tool"], arguments, request.headers)
        said = {"error": reply.error} if reply.error else reply.result
        return Response(_json(said), _STATUS[reply.kind], media_type="application/json")

    app = Starlette(routes=[Route("/{tool}", answer, methods=["POST"])])
    return KnownHosts(OwnWrites(app, _HOSTS, _MOST_BYTES, _OWN_PAGES), _HOSTS, _OWN_PAGES)


class _Answers:
    def __init__(self, suite: Path, case: str | None) -> None:
        self.cases = {each.id: each for each in read_suite(suite).cases}
        if case is not None and case not in self.cases:
            raise no_case("--case", case, str(suite), [*self.cases])
        self._replies = MockReplies([*self.cases.values()], case or "")
        provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
        provider.add_span_processor(PandaEvalSpanProcessor())
        self._tracer = provider.get_tracer(MOCK_SCOPE)

    async def reply(self, tool: str, arguments: Mapping[str, Any], carrier: Mapping[str, Any]) -> MockAnswer:
        carried = TraceContextTextMapPropagator().extract(carrier, W3CBaggagePropagator().extract(carrier))
        token = context.attach(carried)
        try:
            with self._tracer.start_as_current_span(f"mock {tool}"):
                reply = await self._replies.answer(tool, arguments)
        finally:
            context.detach(token)
        message(_json(reply.told(tool, arguments)))
        return reply


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

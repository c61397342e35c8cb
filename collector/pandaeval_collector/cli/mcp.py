"""``pandaeval mcp``: what was scored, for coding agents, over standard input and output."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.cli._run_place import TOKEN_ENV, URL, TokenEnv, Url
from pandaeval_collector.show.api.app import alone
from pandaeval_collector.show.api.client import Asker
from pandaeval_collector.show.mcp.server import server


def mcp(
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            "--data",
            metavar="FOLDER",
            help="Read this data directory instead, whether or not a collector runs on it.",
        ),
    ] = None,
) -> None:
    """Serve results to a coding agent over MCP (stdio); see docs/guides/coding-agents.md."""

    async def serve() -> None:
        with nullcontext() if store is None else alone(store) as api:
            asker = Asker.over_http(url, token_env) if api is None else Asker.within(api)
            try:
                await server(asker, url if store is None else None).run_stdio_async()
            finally:
                await asker.close()

    asyncio.run(serve())

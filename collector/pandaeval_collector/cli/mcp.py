"""``pandaeval mcp``: what was scored, for coding agents, over standard input and output."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandaeval_collector.cli._run_place import TOKEN_ENV, URL, TokenEnv, Url

if TYPE_CHECKING:
    from pandaeval_collector.show.api.client import Asker


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("mcp")(mcp)


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
    """Serve what was scored to a coding agent (Model Context Protocol, stdio); docs/mcp.md says how to add it."""
    import asyncio

    from pandaeval_collector.show.mcp.server import server

    async def serve() -> None:
        async with _asker(url, token_env, store) as asker:
            await server(asker, url if store is None else None).run_stdio_async()

    asyncio.run(serve())


@asynccontextmanager
async def _asker(url: str, token_env: str, folder: Path | None) -> AsyncIterator[Asker]:
    from pandaeval_collector.show.api.client import Asker

    if folder is None:
        asker = Asker.over_http(url, token_env)
        try:
            yield asker
        finally:
            await asker.close()
        return
    from pandaeval_collector.show.api.app import alone

    with alone(folder) as api:
        asker = Asker.within(api)
        yield asker
        await asker.close()

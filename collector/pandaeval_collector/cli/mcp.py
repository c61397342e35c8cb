"""``pandaeval mcp``: what was scored, for coding agents, over standard input and output."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pandaeval_collector.show.api.client import Asker

_HERE = "http://127.0.0.1:4328"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("mcp")(mcp)


def mcp(
    url: Annotated[str, typer.Option(help="HTTP address of a collector.")] = _HERE,
    data: Annotated[
        Path | None, typer.Option(help="Read this data directory instead, whether or not a collector runs on it.")
    ] = None,
) -> None:
    """Serve what was scored to a coding agent (Model Context Protocol, stdio); docs/mcp.md says how to add it.

    A collector that demands a token gets the one in PANDAEVAL_TOKEN.
    """
    import asyncio

    from pandaeval_collector.show.mcp.server import server

    async def serve() -> None:
        async with _asker(url, data) as asker:
            await server(asker, url if data is None else None).run_stdio_async()

    asyncio.run(serve())


@asynccontextmanager
async def _asker(url: str, data: Path | None) -> AsyncIterator[Asker]:
    from pandaeval_collector.show.api.client import Asker

    if data is None:
        asker = Asker.over_http(url)
        try:
            yield asker
        finally:
            await asker.close()
        return
    from pandaeval_collector.show.api.alone import alone

    with alone(data) as api:
        asker = Asker.within(api)
        yield asker
        await asker.close()

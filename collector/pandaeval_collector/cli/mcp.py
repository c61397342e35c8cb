"""``pandaeval mcp``: results for coding agents over standard input and output."""

from __future__ import annotations

import asyncio

from pandaeval_collector.cli._run_place import URL, LookedAt, Url
from pandaeval_collector.show.api.app import alone
from pandaeval_collector.show.api.client import Asker


def mcp(url: Url = URL, store: LookedAt = None) -> None:
    """Serve results to a coding agent over MCP (stdio).

    See docs/guides/coding-agents.md."""
    if store is None:
        asyncio.run(_serve(Asker.over_http(url), url))
        return
    with alone(store) as api:
        asyncio.run(_serve(Asker.within(api), None))


async def _serve(asker: Asker, page: str | None) -> None:
    from pandaeval_collector.show.mcp.server import server  # imports the extra mcp, which the help does not need

    try:
        await server(asker, page).run_stdio_async()
    finally:
        await asker.close()

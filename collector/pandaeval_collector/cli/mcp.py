"""``pandaeval mcp``: results for coding agents over standard input and output."""

from __future__ import annotations

import asyncio

from pandaeval_collector.cli._run_place import Place, placed
from pandaeval_collector.show.api.app import alone
from pandaeval_collector.show.api.client import Asker


@placed
def mcp(place: Place) -> None:
    """Serve results to a coding agent over MCP (stdio).

    See docs/guides/coding-agents.md."""
    if place.store is None:
        asyncio.run(_serve(Asker.over_http(place.url), place.url))
        return
    with alone(place.store) as api:
        asyncio.run(_serve(Asker.within(api), None))


async def _serve(asker: Asker, page: str | None) -> None:
    from pandaeval_collector.show.mcp.server import server  # imports the extra mcp, which the help does not need

    try:
        await server(asker, page).run_stdio_async()
    finally:
        await asker.close()

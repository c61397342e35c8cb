"""``pandaeval mcp``: results for coding agents over standard input and output."""

from __future__ import annotations

import asyncio

from pandaeval_collector.base.untrusted.printable import shown_address
from pandaeval_collector.cli._run_place import URL, StoreOption, Url
from pandaeval_collector.show.api.app import read_only_app
from pandaeval_collector.show.api.client import AsyncApiClient


def mcp(url: Url = URL, store: StoreOption = None) -> None:
    """Serve results to a coding agent over MCP (stdio).

    See docs/guides/coding-agents.md."""
    if store is None:
        asyncio.run(_serve(AsyncApiClient.over_http(url), shown_address(url)))
        return
    with read_only_app(store) as api:
        asyncio.run(_serve(AsyncApiClient.within(api), None))


async def _serve(asker: AsyncApiClient, page: str | None) -> None:
    from pandaeval_collector.show.mcp.server import server  # imports the extra mcp, which the help does not need

    try:
        await server(asker, page).run_stdio_async()
    finally:
        await asker.close()

"""``pandaeval top``: what a running collector says of its agents, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandaeval_collector.cli._run_place import TOKEN_ENV, URL, TokenEnv, Url

if TYPE_CHECKING:
    from rich.console import Console

    from pandaeval_collector.show.api.client import Asker


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("top")(top)


def top(
    url: Url = URL,
    token_env: TokenEnv = TOKEN_ENV,
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two looks.")] = 2.0,
    hours: Annotated[float, typer.Option(min=0.01, max=100_000, help="Sessions of the last so many hours.")] = 24.0,
    once: Annotated[bool, typer.Option("--once", help="Print it once and leave, as in a pipe.")] = False,
) -> None:
    """Watch a running collector: worst sessions, pass rates by metric and agent, the judge's queue and cost.

    Ends with Ctrl-C.
    """
    import asyncio
    import contextlib

    from pandaeval_collector.cli._output import console

    out = console()
    if once or not out.is_terminal:
        asyncio.run(_once(url, token_env, hours, out))
    else:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_watch(url, token_env, hours, every, out))


async def _once(url: str, token_env: str, hours: float, out: Console) -> None:
    from pandaeval_collector.cli._top_view import view

    asker = _asker(url, token_env)
    try:
        for part in view(*await _asked(asker, hours), out):
            out.print(part)
    finally:
        await asker.close()


async def _watch(url: str, token_env: str, hours: float, every: float, out: Console) -> None:
    """Shows and renews the view. Raises ``AskError`` if the first look fails; shows later errors and goes on."""
    import asyncio

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from pandaeval_collector.cli._output import safe
    from pandaeval_collector.cli._terminal import guarded
    from pandaeval_collector.cli._top_view import view
    from pandaeval_collector.show.api.client import AskError

    asker = _asker(url, token_env)
    try:
        shown = view(*await _asked(asker, hours), out)
        with Live(Group(*shown), console=out, screen=True, auto_refresh=False) as live, guarded():
            while True:
                live.refresh()
                await asyncio.sleep(every)
                try:
                    shown = view(*await _asked(asker, hours), out)
                    live.update(Group(*shown))
                except AskError as error:
                    live.update(Group(Text(safe(str(error)), style="bold red"), *shown))
    finally:
        await asker.close()


def _asker(url: str, token_env: str) -> Asker:
    from pandaeval_collector.show.api.client import Asker

    return Asker.over_http(url, token_env)


async def _asked(asker: Asker, hours: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from datetime import UTC, datetime, timedelta

    since = datetime.now(UTC) - timedelta(hours=hours)
    whole = await asker.get("/overview")
    page = await asker.get("/sessions", since=since.isoformat(), limit=20)
    return whole, page["items"]

"""``pandaeval top``: what a running collector says of its agents, in a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from pandaeval_collector.cli._output import console, safe
from pandaeval_collector.cli._run_place import TOKEN_ENV, URL, Api, TokenEnv, Url
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.cli._top_view import view
from pandaeval_collector.show.api.client import AskError


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
    out = console()
    with Api(url, token_env) as api:

        def look() -> list[RenderableType]:
            since = datetime.now(UTC) - timedelta(hours=hours)
            whole, page = api.get("/overview"), api.get("/sessions", since=since.isoformat(), limit=20)
            return view(whole, page["items"], out)

        if once or not out.is_terminal:
            for part in look():
                out.print(part)
        else:
            with contextlib.suppress(KeyboardInterrupt):
                _watch(look, every, out)


def _watch(look: Callable[[], list[RenderableType]], every: float, out: Console) -> None:
    """Shows and renews the view. Raises ``AskError`` if the first look fails; shows later errors and goes on."""
    shown = look()
    with Live(Group(*shown), console=out, screen=True, auto_refresh=False) as live, guarded():
        while True:
            live.refresh()
            time.sleep(every)
            try:
                shown = look()
                live.update(Group(*shown))
            except AskError as error:
                live.update(Group(Text(safe(str(error)), style="bold red"), *shown))

"""``pandaeval top``: what a running collector says of its agents, in a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pandaeval_collector.cli._listings import RATES, SESSIONS, Row, cells
from pandaeval_collector.cli._output import console, safe, table
from pandaeval_collector.cli._run_place import TOKEN_ENV, URL, TokenEnv, Url, over_http
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.show.api.client import AskError
from pandaeval_collector.show.view.texts import dollars


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
    with over_http(url, token_env) as api:

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


_RATES = 20
_WIDE, _AROUND, _LONGEST_NAME = 110, 11, 28
_NAMES = ("session", "metric", "agent")
_FOUND = "what was found"
_SESSIONS = {False: {"session", "agent", "traces", "failed", _FOUND}, True: {"session", _FOUND}}
_RATED = {False: None, True: {"metric", "agent", "failed", "pass rate"}}
"""Columns on a terminal that is not wide (true): what is wrong, before how much there is of it."""


def view(whole: Row, sessions: Sequence[Row], out: Console) -> list[RenderableType]:
    """Returns the judge's line, the sessions' table and the rates'. ``whole``: the API's overview, ``sessions``: its
    list."""
    rates, most_sessions, most_rates = whole["rates"], len(sessions), _RATES
    more = f", {_RATES} of {len(rates)}" if len(rates) > _RATES else ""
    if narrow := out.is_terminal and out.width < _WIDE:
        room = max(4, out.height - _AROUND)
        most_sessions, most_rates = room - room // 3, room // 3
    made = table(*cells(sessions[:most_sessions], SESSIONS, _SESSIONS[narrow]), on=out, title="Sessions, worst first")
    title = f"Results since the store began{more}"
    rated = table(*cells(rates[:most_rates], RATES, _RATED[narrow]), on=out, title=title)
    if narrow:
        _fit(made)
        _fit(rated)
    return [Text(_judge(whole)), made, rated]


def _fit(made: Table) -> None:
    """Has each row of a table stay on one line."""
    for column in made.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
        if column.header == _FOUND:
            column.ratio, made.expand = 1, True  # it takes what the others leave
        elif column.header in _NAMES:
            column.max_width = _LONGEST_NAME


def _judge(whole: Row) -> str:
    """Returns the judge's line, as ``judge openai/gpt-4o: jobs 12 done, 3 waiting; spent $0.0123 of $5.00 today``."""
    if whole["judge"] is None:
        return "no judge is configured (judge.model)"
    queue = ", ".join(f"{times} {safe(str(state))}" for state, times in sorted(whole["jobs"].items())) or "none"
    limit = "" if whole["daily_usd"] is None else f" of ${whole['daily_usd']:.2f}"
    return f"judge {safe(whole['judge'])}: jobs {queue}; spent {dollars(whole['spent_usd'])}{limit} today"

"""``pandaeval top``: what a running collector says of its agents, in a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import console, safe, table
from pandaeval_collector.cli._run_place import TOKEN_ENV, URL, TokenEnv, Url, over_http
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.show.api.client import AskError
from pandaeval_collector.show.view.lines import headline
from pandaeval_collector.show.view.rates import Tally
from pandaeval_collector.show.view.results import ResultRow, failing
from pandaeval_collector.show.view.texts import dollars, number


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
_NARROW = ({"session", "worst", "what was found"}, {"metric", "agent", "failed", "pass rate"})
"""Columns on a terminal that is not wide: what is wrong, before how much there is of it."""
_MOST = 80
Row = Mapping[str, Any]


def view(whole: Row, sessions: Sequence[Row], out: Console) -> list[RenderableType]:
    """Returns the judge's line, the sessions' table and the rates'. ``whole``: the API's overview, ``sessions``: its
    list."""
    rates = whole["rates"]
    more = f", {_RATES} of {len(rates)}" if len(rates) > _RATES else ""
    kept, most_sessions, most_rates = None, len(sessions), _RATES
    if out.is_terminal and out.width < _WIDE:
        kept, room = _NARROW, max(4, out.height - _AROUND)
        most_sessions, most_rates = room - room // 3, room // 3
    columns = ("session", "agent", "traces", "failed", "worst", "what was found")
    ratings = ("metric", "agent", "service", "scored", "failed", "pass rate", "unscored")
    found = [_session(row) for row in sessions[:most_sessions]]
    rated = [_rate(rate) for rate in rates[:most_rates]]
    return [
        Text(_judge(whole)),
        _fitting(columns, found, kept and kept[0], out, "Sessions, worst first"),
        _fitting(ratings, rated, kept and kept[1], out, f"Results since the store began{more}"),
    ]


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[object]], kept: Collection[str] | None, out: Console, title: str
) -> Table:
    """Returns a table with all columns, or with the ``kept`` ones, each row then on one line."""
    at = [place for place, name in enumerate(columns) if kept is None or name in kept]
    made = table([columns[place] for place in at], [[row[place] for place in at] for row in rows], on=out, title=title)
    if kept is not None:
        for column in made.columns:
            column.no_wrap, column.overflow = True, "ellipsis"
            if column.header == "what was found":
                column.ratio, made.expand = 1, True  # it takes what the others leave
            elif column.header in _NAMES:
                column.max_width = _LONGEST_NAME
    return made


def _judge(whole: Row) -> str:
    """Returns the judge's line, as ``judge openai/gpt-4o: jobs 12 done, 3 waiting; spent $0.0123 of $5.00 today``."""
    if whole["judge"] is None:
        return "no judge is configured (judge.model)"
    queue = ", ".join(f"{times} {safe(str(state))}" for state, times in sorted(whole["jobs"].items())) or "none"
    limit = "" if whole["daily_usd"] is None else f" of ${whole['daily_usd']:.2f}"
    return f"judge {safe(whole['judge'])}: jobs {queue}; spent {dollars(whole['spent_usd'])}{limit} today"


def _session(row: Row) -> tuple[object, ...]:
    worst = row["worst"]
    name = row["session_id"] if row["session_id"] is not None else f"trace {worst['trace_id'][:12]}" if worst else "-"
    first = next(iter(failing([*row["results"], *(worst["results"] if worst else ())])), None)
    if first is None:
        why = headline(worst, _MOST) if worst and worst["error"] else ""
    else:
        shown = ResultRow.of(first)
        why = f"{shown.reason} ({shown.metric}{'' if shown.final else ' so far'})"
    lowest = worst["worst"] if worst else None
    return (
        _short(name),
        _short(worst["agent"]) if worst else "",
        row["traces"],
        row["failed_traces"],
        Text(number(lowest), style="bold red" if row["failed"] else "green"),
        _short(why),
    )


def _rate(rate: Row) -> tuple[object, ...]:
    tally = Tally()
    tally.take(rate)
    return (
        f"{rate['level']}.{rate['metric']}",
        _short(rate["agent"]),
        _short(rate["service"]),
        tally.scored,
        tally.failed,
        number(tally.share, ".3f"),
        tally.missing or "",
    )


def _short(text: str) -> str:
    return excerpt(text, _MOST) or ""

"""What ``pandaeval top`` shows: a line on the judge, the worst sessions, the rates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pandaeval_collector.cli._output import safe, table

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
    rates = sorted(whole["rates"], key=lambda rate: (-rate["failed"], rate["metric"], rate["agent"]))
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
    return f"judge {safe(whole['judge'])}: jobs {queue}; spent ${whole['spent_usd']:.4f}{limit} today"


def _session(row: Row) -> tuple[object, ...]:
    worst = row["worst"]
    name = row["session_id"] if row["session_id"] is not None else f"trace {worst['trace_id'][:12]}" if worst else "-"
    found = next((each for each in row["results"] if each.get("success") is False), None)
    if found is None and worst is not None:
        found = next((each for each in worst["results"] if each.get("success") is False), None)
    open_ = " so far" if found and found.get("final") is False else ""
    why = f"{found['reason']} ({found['metric']}{open_})" if found else (worst and worst["error"]) or ""
    lowest = worst["worst"] if worst else None
    return (
        _short(name),
        _short(worst["agent"]) if worst else "",
        row["traces"],
        row["failed_traces"],
        Text("-" if lowest is None else f"{lowest:.2f}", style="bold red" if row["failed"] else "green"),
        _short(why),
    )


def _rate(rate: Row) -> tuple[object, ...]:
    judged = rate["passed"] + rate["failed"]
    return (
        f"{rate['level']}.{rate['metric']}",
        _short(rate["agent"]),
        _short(rate["service"]),
        rate["scored"],
        rate["failed"],
        f"{rate['passed'] / judged:.3f}" if judged else "-",
        sum(rate["unscored"].values()) or "",
    )


def _short(text: str) -> str:
    """Returns the text on one line, cut before it is made printable, so that no escape is cut in two."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST else f"{flat[: _MOST - 1]}…"

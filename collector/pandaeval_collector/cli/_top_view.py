"""What ``pandaeval top`` shows: a line on the judge, the worst sessions, the rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from pandaeval_collector.cli._output import safe, table

_RATES = 20
_MOST = 80
Row = Mapping[str, Any]


def view(whole: Row, sessions: Sequence[Row], out: Console) -> list[RenderableType]:
    """``whole``: the API's overview, ``sessions``: items of its list, worst first."""
    rates = sorted(whole["rates"], key=lambda rate: (-rate["failed"], rate["metric"], rate["agent"]))
    more = f", {_RATES} of {len(rates)}" if len(rates) > _RATES else ""
    columns = ("session", "agent", "traces", "failed", "worst", "what was found")
    return [
        Text(_judge(whole)),
        table(columns, map(_session, sessions), on=out, title="Sessions, worst first"),
        table(
            ("metric", "agent", "service", "scored", "failed", "pass rate", "unscored"),
            map(_rate, rates[:_RATES]),
            on=out,
            title=f"Results since the store began{more}",
        ),
    ]


def _judge(whole: Row) -> str:
    """``judge openai/gpt-4o-mini: 3 waiting, 12 done; spent $0.0123 of $5.00 today``."""
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
    why = f"{found['metric']}{open_}: {found['reason']}" if found else (worst and worst["error"]) or ""
    return (
        _short(name),
        _short(worst["agent"]) if worst else "",
        row["traces"],
        row["failed_traces"],
        _score(worst["worst"] if worst else None, bool(row["failed"])),
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


def _score(value: float | None, failed: bool) -> Text:
    shown = "-" if value is None else f"{value:.2f}"
    return Text(shown, style="bold red" if failed else "green")


def _short(text: str) -> str:
    """Cut before it is made printable, so that no escape is cut in two."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST else f"{flat[: _MOST - 1]}…"

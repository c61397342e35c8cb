"""Prints results as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import print_list, reason_room, safe, table
from pandaeval_collector.show.view.results import ResultView
from pandaeval_collector.show.view.texts import NONE, number
from pandaeval_collector.show.view.unscored import unasked
from pandaeval_lab.cli._costs import print_costs
from pandaeval_lab.cli._summary import SessionSummaryRow, Summary
from pandaeval_lab.replay.root_causes import RootCause
from pandaeval_otel.base.component_errors import Component, raised_text

MAX_ROWS = 40


def print_summary(summary: Summary, out: Console, judge: str | None = None) -> None:
    sessions = summary.sessions_worst_first()
    if summary.headline:
        out.print(Text(summary.headline, style="bold"))
    if sessions:
        print_sessions(sessions, out)
    out.print(_metric_table(summary, out))
    print_costs(summary.costs, out)
    if told := as_text(summary.groups):
        out.print(Text("\n".join(safe(line) if line.strip() else "" for line in told.splitlines())))
    missing = unasked(summary.tallies, summary.agents_traces, judge)
    if missing:
        out.print(Text(missing))


def as_text(groups: Iterable[RootCause]) -> str:
    told = [f"  {each.heading}\n    {each.description}\n    Examples: {each.places}" for each in groups]
    return "\n".join(["Unique errors:", *told]) if told else ""


def print_component_errors(out: Console, raised: Mapping[Component, int]) -> None:
    if raised:
        told = f"warning: components raised errors, so their results are missing: {raised_text(raised)}"
        out.print(Text(safe(told), style="yellow"))


def print_problems(out: Console, problems: Iterable[str], bad: int) -> None:
    for problem in problems:
        out.print(Text(f"warning: {safe(problem)}", style="yellow"))
    if bad > 10:
        out.print(Text(f"warning: … and {bad - 10} more", style="yellow"))


def print_sessions(rows: Sequence[SessionSummaryRow], out: Console) -> None:
    columns = ("session", "agent", "traces", "handled correctly", "worst signal", "reliability", "finding")
    shown = (
        (
            row.session_id,
            row.worst.agent if row.worst else "",
            row.traces,
            _verdict(row.verdict),
            _score(row.shown.signal, False if row.shown.failed else None) if row.shown and row.shown.agrees else NONE,
            _cell(None if row.verdict and row.reliability and row.reliability.inline else row.reliability),
            excerpt(row.found, reason_room(out)),
        )
        for row in rows[:MAX_ROWS]
    )
    print_list(columns, shown, "Sessions and single traces, worst first", out)
    _tell_more(len(rows), out)


def print_things(verdicts: Sequence[Mapping[str, Any]], out: Console) -> None:
    wrong = [each for each in verdicts if each["success"] is False and each["metadata"].get("things")]
    if wrong:
        worst = max(wrong, key=lambda each: len(each["metadata"]["things"]))
        columns = (f"requests in {worst['session_id']}", "outcome", "evidence")
        rows = [(each["thing"], each["became"], each["shown_by"] or NONE) for each in worst["metadata"]["things"]]
        out.print(table(columns, rows, on=out))


def _metric_table(summary: Summary, out: Console) -> Table:
    columns: tuple[str, ...] = ("metric", "scored", "mean", "assumed", "unscored", "reason unscored")
    if has_open := any(tally.open for tally in summary.tallies.values()):
        columns = (*columns, "passed")
    means = summary.means()
    rows = [
        (key, tally.scored, number(means.get(key), ".3f"), tally.assumed, tally.missing, tally.whys)
        + ((tally.decided if tally.open else "",) if has_open else ())
        for key, tally in sorted(summary.tallies.items())
    ]
    return table(columns, rows, on=out, title="Metrics")


def _cell(row: ResultView | None) -> Text:
    if row is None:
        return Text("")
    if row.outcome != "scored":
        return Text(row.word, style="dim")
    if row.says:  # never in the colour of a pass
        told = f"{number(row.score)} {row.says}" if row.agrees else row.says
        return Text(told, style="bold red") if row.failed else Text(row.says)
    return _score(row.score, row.success)


def _verdict(row: ResultView | None) -> Text:
    if row is None:
        return Text("")
    if row.success is None:
        return Text(row.label or "not judged", style="dim")
    return Text("yes", style="green") if row.success else Text("no", style="bold red")


def _score(value: float | None, success: bool | None) -> Text:
    style = "dim" if value is None else {True: "green", False: "bold red"}.get(success, "")  # type: ignore[arg-type]
    return Text(number(value), style=style)


def _tell_more(rows: int, out: Console) -> None:
    if rows > MAX_ROWS:
        out.print(f"… and {rows - MAX_ROWS} more (--format json lists all)")

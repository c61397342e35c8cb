"""Prints results as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from pandaeval_collector.cli._output import print_table
from pandaeval_collector.show.view.texts import NONE, number
from pandaeval_collector.show.view.unscored import unasked
from pandaeval_collector.store.finding import Finder
from pandaeval_lab.cli._costs import priced, print_costs
from pandaeval_lab.cli._sessions import print_sessions
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause


def print_summary(summary: Summary, finder: Finder, out: Console, judge: str | None) -> None:
    if summary.headline:
        out.print(summary.headline, style="bold")
    if summary.units:
        print_sessions(finder, summary.units, out)
    _print_metrics(summary, out)
    print_costs(finder, out)
    if summary.judge_tokens:
        cost = priced(summary.judge_usd, summary.judge_unpriced)
        out.print(f"Judge: {summary.judge_tokens:,} tokens, {cost}")
    if told := as_text(summary.groups):
        out.print(told)
    missing = unasked(summary.tallies, summary.agents_traces, judge)
    if missing:
        out.print(missing)


def as_text(groups: Iterable[RootCause]) -> str:
    told = [f"  {each.heading}\n    {each.description}\n    Examples: {each.places}" for each in groups]
    return "\n".join(["Unique errors:", *told]) if told else ""


def print_things(verdicts: Sequence[Mapping[str, Any]], out: Console) -> None:
    wrong = [each for each in verdicts if each["success"] is False and each["metadata"].get("things")]
    if wrong:
        worst = max(wrong, key=lambda each: len(each["metadata"]["things"]))
        columns = (f"requests in {worst['session_id']}", "outcome", "evidence")
        rows = [(each["thing"], each["became"], each["shown_by"] or NONE) for each in worst["metadata"]["things"]]
        print_table(columns, rows, on=out)


def _print_metrics(summary: Summary, out: Console) -> None:
    columns: tuple[str, ...] = ("metric", "scored", "mean", "assumed", "unscored", "reason unscored")
    if has_open := any(tally.open for tally in summary.tallies.values()):
        columns = (*columns, "passed")
    means = summary.means()
    rows = [
        (key, tally.scored, number(means.get(key), ".3f"), tally.assumed, tally.missing, tally.whys)
        + ((tally.decided if tally.open else "",) if has_open else ())
        for key, tally in sorted(summary.tallies.items())
    ]
    print_table(columns, rows, "Metrics", out)

"""Prints the sessions, metrics and costs of a run as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from pandaeval_collector.cli._output import ID, Listing, Row, print_list, print_table, reason_room, show
from pandaeval_collector.show.view.lines import of_session, session_headline
from pandaeval_collector.show.view.rows import SessionRow
from pandaeval_collector.show.view.texts import NO_VALUE, dollars, number
from pandaeval_collector.show.view.unscored import unjudged_text
from pandaeval_collector.store.costs import read_costs
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NO_SCORE, NOT_FAILED, Wanted
from pandaeval_collector.store.listed_pages import ListedSession
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause

_MOST_SESSIONS, _MOST_COSTS = 40, 10
_HALF = 0.5


def print_summary(summary: Summary, finder: Finder, out: Console, judge: str | None) -> None:
    if summary.headline:
        out.print(summary.headline, style="bold")
    if summary.units:
        print_sessions(finder, summary.units, out)
    _print_metrics(summary, out)
    _print_costs(finder, out)
    if summary.judge_tokens:
        cost = _priced(summary.judge_usd, summary.judge_unpriced)
        out.print(f"Judge: {summary.judge_tokens:,} tokens, {cost}")
    if errors_text := as_text(summary.groups):
        out.print(errors_text)
    missing = unjudged_text(summary.tallies, summary.agents_traces, judge)
    if missing:
        out.print(missing)


def as_text(groups: Iterable[RootCause]) -> str:
    entries = [f"  {each.heading}\n    {each.description}\n    Examples: {each.places}" for each in groups]
    return "\n".join(["Unique errors:", *entries]) if entries else ""


def print_things(verdicts: Sequence[Mapping[str, Any]], out: Console) -> None:
    wrong = [each for each in verdicts if each["success"] is False and each["metadata"].get("things")]
    if wrong:
        worst = max(wrong, key=lambda each: len(each["metadata"]["things"]))
        columns = (f"requests in {worst['session_id']}", "outcome", "evidence")
        rows = [(each["thing"], each["became"], each["shown_by"] or NO_VALUE) for each in worst["metadata"]["things"]]
        print_table(columns, rows, on=out)


def _print_metrics(summary: Summary, out: Console) -> None:
    columns = ("metric", "scored", "mean", "assumed", "unscored", "reason unscored", "passed")
    means = summary.means()
    rows = [
        (
            key,
            tally.scored,
            number(means.get(key), ".3f"),
            tally.assumed,
            tally.missing,
            tally.whys,
            tally.decided if tally.open else "",
        )
        for key, tally in sorted(summary.tallies.items())
    ]
    print_table(columns, rows, "Metrics", out)


def print_sessions(finder: Finder, sessions: int, out: Console) -> None:
    """Print the worst of all ``sessions`` and traces without a session."""
    listing = Listing(
        (
            ("session", lambda row: row["session_id"] or f"trace {row['worst']['trace_id'][:ID]}"),
            ("agent", lambda row: (row["worst"] or {}).get("agent", NO_VALUE)),
            ("runs", "traces"),
            ("handled correctly", _handled),
            ("worst signal", _worst_signal),
            ("reliability", _reliability),
            ("finding", lambda row: session_headline(row, reason_room(out))),
        ),
        title="Sessions and single runs, worst first",
        says_why=True,
    )
    rows = [_session_row(unit) for unit in finder.sessions(Wanted(), limit=_MOST_SESSIONS).rows]
    show(rows, listing, on=out)
    if sessions > _MOST_SESSIONS:
        out.print(f"… and {sessions - _MOST_SESSIONS} more (--format json lists all)")


def _session_row(unit: ListedSession) -> Row:
    """Return an API row with the signal by which the list is sorted."""
    signal = unit.position[0] - NOT_FAILED * (not unit.failed)
    return {**SessionRow.of(unit).model_dump(), "signal": None if signal >= NO_SCORE else signal}


def _handled(row: Row) -> Text:
    verdict = of_session(row, "correctness")
    if verdict is None:
        return Text("")
    if verdict.success is None:
        return Text(verdict.label or "not judged", style="dim")
    return Text("yes", style="green") if verdict.success else Text("no", style="bold red")


def _worst_signal(row: Row) -> str:
    """Return the worst signal, unless it contradicts the verdict in the row."""
    signal, held = row["signal"], of_session(row, "agent_reliability")
    is_misleading = row["failed"] != (signal is not None and signal < _HALF)
    if is_misleading or (held is not None and held.replacement_text and not row["failed"]):
        return NO_VALUE
    return number(signal)


def _reliability(row: Row) -> str:
    held = of_session(row, "agent_reliability")
    if held is None or (held.inline and of_session(row, "correctness")):
        return ""
    if held.score is None:
        return held.word
    return f"{number(held.score) if held.agrees else ''} {held.replacement_text}".strip()


def _print_costs(finder: Finder, out: Console) -> None:
    rows = [*_costs(finder)]
    if rows:
        print_list(("by", "name", "runs", "tokens", "cost"), rows, "Cost of the runs", out)


def _priced(usd: float | None, unpriced: int) -> str:
    """Return a cost as text. ``unpriced``: runs or verdicts without a price."""
    if usd is None:
        return "unknown" if unpriced else NO_VALUE
    return f"{'at least ' if unpriced else ''}{dollars(usd)}"


def _costs(finder: Finder) -> Iterator[tuple[str, str, int, str, str]]:
    every = finder.count(Wanted())
    for by in ("agent", "user", "session", "day"):
        for name, runs, into, out, usd, unpriced, *_ in read_costs(finder, Wanted(), by, _MOST_COSTS, every):
            if name is not None and (into or out or usd):
                yield by, name, runs, f"{into + out:,}", _priced(usd, unpriced)

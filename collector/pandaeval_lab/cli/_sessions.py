"""Prints the sessions of a store, worst first, with their scores."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from pandaeval_collector.cli._listings import ID, Listing, Row, cells
from pandaeval_collector.cli._output import print_list, reason_room
from pandaeval_collector.show.view.lines import headline, session_headline
from pandaeval_collector.show.view.results import ResultView, spelled_out
from pandaeval_collector.show.view.rows import SessionRow
from pandaeval_collector.show.view.texts import NONE, number, said
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import NO_SCORE, NOT_FAILED, Wanted
from pandaeval_collector.store.listed_pages import ListedSession

MAX_ROWS = 40
_HALF = 0.5


def print_sessions(finder: Finder, sessions: int, out: Console) -> None:
    """Print the worst of all ``sessions`` and traces without a session."""
    columns = (
        ("session", lambda row: row["session_id"] or f"trace {row['worst']['trace_id'][:ID]}"),
        ("agent", lambda row: (row["worst"] or {}).get("agent", NONE)),
        ("runs", lambda row: row["traces"]),
        ("handled correctly", _handled),
        ("worst signal", _worst_signal),
        ("reliability", _reliability),
        ("finding", lambda row: _finding(row, reason_room(out))),
    )
    rows = [_row(unit) for unit in finder.sessions(Wanted(), limit=MAX_ROWS).rows]
    print_list(*cells(rows, Listing(columns)), "Sessions and single runs, worst first", out)
    if sessions > MAX_ROWS:
        out.print(f"… and {sessions - MAX_ROWS} more (--format json lists all)")


def _row(unit: ListedSession) -> Row:
    """Return an API row with the signal by which the list is sorted."""
    signal = unit.position[0] - NOT_FAILED * (not unit.failed)
    return {**SessionRow.of(unit).model_dump(), "signal": None if signal >= NO_SCORE else signal}


def _view(row: Row, metric: str) -> ResultView | None:
    """Return a result of the session, or of the trace without a session."""
    about = row if row["session_id"] else row["worst"] or row
    return next((ResultView.of(each) for each in about["results"] if each["metric"] == metric), None)


def _handled(row: Row) -> Text:
    verdict = _view(row, "correctness")
    if verdict is None:
        return Text("")
    if verdict.success is None:
        return Text(verdict.label or "not judged", style="dim")
    return Text("yes", style="green") if verdict.success else Text("no", style="bold red")


def _worst_signal(row: Row) -> str:
    """Return the worst signal, unless it contradicts the words."""
    signal, held = row["signal"], _view(row, "agent_reliability")
    is_misleading = row["failed"] != (signal is not None and signal < _HALF)
    if is_misleading or (held is not None and held.says and not row["failed"]):
        return NONE
    return number(signal)


def _reliability(row: Row) -> str:
    held = _view(row, "agent_reliability")
    if held is None or (held.inline and _view(row, "correctness")):
        return ""
    if held.score is None:
        return held.word
    return f"{number(held.score) if held.agrees else ''} {held.says}".strip()


def _finding(row: Row, most: int) -> str:
    verdict, held, worst = _view(row, "correctness"), _view(row, "agent_reliability"), row["worst"] or {}
    if verdict is not None and verdict.failed:
        return f"{verdict.fault}: {said(verdict.reason, most)}"
    if row["failed"]:
        return headline(worst, most) if worst.get("failed") else session_headline(row, most)
    if verdict is not None and verdict.success:
        return f"handled correctly: {said(verdict.reason, most)}"
    if held is not None and held.says:
        return spelled_out(held.label, said(held.reason, most))
    return session_headline(row, most)

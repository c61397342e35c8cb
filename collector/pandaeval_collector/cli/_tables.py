"""Results as tables for people: sessions worst first, then traces, then what could not be scored."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Result = Mapping[str, Any]
"""A result as its JSON object."""

MAX_ROWS = 40


def console(file: Any = None) -> Console:
    """Coloured on a terminal, plain and unwrapped elsewhere; honours NO_COLOR."""
    stream = file or sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 140, highlight=False)


class Summary:
    """Collects results one by one, and keeps only what the tables show."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        self._traces: dict[str, dict[str, Result]] = {}
        self._sessions: dict[str, dict[str, Result]] = {}
        self._totals: dict[str, list[float]] = {}

    def add(self, result: Result) -> None:
        key = f"{result['level']}.{result['metric']}"
        self.outcomes[key, result["outcome"], result["why"] or ""] += 1
        if result["outcome"] == "scored":
            total = self._totals.setdefault(key, [0.0, 0.0])
            total[0] += result["score"]
            total[1] += 1
        if result["level"] == "session":
            self._sessions.setdefault(result["session_id"], {})[result["metric"]] = result
        else:
            self._traces.setdefault(result["trace_id"], {})[result["metric"]] = result

    @property
    def traces(self) -> Mapping[str, Mapping[str, Result]]:
        return self._traces

    def means(self) -> dict[str, float]:
        """The mean score of each metric that has any."""
        return {key: total / count for key, (total, count) in self._totals.items()}

    def sessions_worst_first(self) -> list[tuple[str, float | None, Result | None, int]]:
        """(session, worst inline signal, the result it comes from, traces), worst first; unscored last."""
        members: dict[str, list[Result]] = {}
        counts: Counter[str] = Counter()
        for results in self._traces.values():
            session = next(iter(results.values()))["session_id"]
            if session is not None:
                counts[session] += 1
                members.setdefault(session, []).extend(results.values())
        rows = []
        for session, count in counts.items():
            own = [result for result in self._sessions.get(session, {}).values() if result["outcome"] == "scored"]
            worst = min([*members[session], *own], key=_badness, default=None)
            value = signal(worst) if worst is not None and worst["outcome"] == "scored" else None
            rows.append((session, value, worst if value is not None else None, count))
        return sorted(rows, key=lambda row: (row[1] is None, row[1] if row[1] is not None else 0.0, row[0]))

    def print(self, out: Console) -> None:
        """Sessions, traces, and a line per metric."""
        sessions = self.sessions_worst_first()
        if sessions:
            out.print(self._session_table(sessions))
        if self._traces:
            out.print(self._trace_table())
        out.print(self._metric_table())

    def _session_table(self, rows: Sequence[tuple[str, float | None, Result | None, int]]) -> Table:
        table = Table(title="Sessions, worst first", title_justify="left", header_style="bold")
        for name in ("session", "agent"):
            table.add_column(name, overflow="fold")
        table.add_column("traces", justify="right")
        table.add_column("worst signal", justify="right")
        table.add_column("reliability", justify="right")
        table.add_column("what is worst", overflow="fold")
        for session, value, worst, count in rows[:MAX_ROWS]:
            reliability = self._sessions.get(session, {}).get("agent_reliability")
            table.add_row(
                session,
                worst["agent"] if worst is not None else "",
                str(count),
                shown(value, worst["success"] if worst else None),
                cell(reliability),
                f"{worst['metric']}: {worst['reason']}" if worst is not None else "nothing scored",
            )
        _more(table, len(rows))
        return table

    def _trace_table(self) -> Table:
        names = sorted({name for results in self._traces.values() for name in results})
        table = Table(title="Traces, worst first", title_justify="left", header_style="bold")
        for name in ("trace", "agent", "session"):
            table.add_column(name, overflow="fold")
        for name in names:
            table.add_column(name, justify="right")
        ordered = sorted(self._traces.items(), key=lambda item: (min(map(_badness, item[1].values())), item[0]))
        for trace_id, results in ordered[:MAX_ROWS]:
            any_ = next(iter(results.values()))
            table.add_row(
                trace_id[:12], any_["agent"], any_["session_id"] or "-", *(cell(results.get(name)) for name in names)
            )
        _more(table, len(ordered))
        return table

    def _metric_table(self) -> Table:
        table = Table(title="Metrics", title_justify="left", header_style="bold")
        table.add_column("metric")
        for name in ("scored", "mean", "assumed", "unscored"):
            table.add_column(name, justify="right")
        table.add_column("why unscored", overflow="fold")
        for key in sorted({key for key, _, _ in self.outcomes}):
            counts: Counter[str] = Counter()
            whys: Counter[str] = Counter()
            for (name, outcome, why), count in self.outcomes.items():
                if name == key:
                    counts[outcome] += count
                    if why:
                        whys[why] += count
            total = self._totals.get(key)
            mean = f"{total[0] / total[1]:.3f}" if total else "-"
            reasons = ", ".join(f"{why} {count}" for why, count in whys.most_common())
            table.add_row(key, str(counts["scored"]), mean, str(counts["assumed"]), str(counts["unscored"]), reasons)
        return table


def signal(result: Result) -> float:
    """A score as sessions see it: coherence on its calibrated scale, everything else as it is."""
    return float(result["metadata"].get("calibrated", result["score"]))


def cell(result: Result | None) -> Text:
    """A result in a table cell: the score, ``assumed`` or why there is none."""
    if result is None:
        return Text("")
    if result["outcome"] == "scored":
        return shown(result["score"], result["success"])
    return Text(result["why"] or result["outcome"], style="dim")


def shown(value: float | None, success: bool | None) -> Text:
    if value is None:
        return Text("-", style="dim")
    style = "" if success is None else "green" if success else "bold red"
    return Text(f"{value:.2f}", style=style)


def _badness(result: Result) -> float:
    return signal(result) if result["outcome"] == "scored" else 2.0


def _more(table: Table, rows: int) -> None:
    if rows > MAX_ROWS:
        table.caption = f"… and {rows - MAX_ROWS} more (--format json has them all)"
        table.caption_justify = "left"


def print_problems(out: Console, problems: Iterable[str], bad: int) -> None:
    """What of the input could not be read."""
    for problem in problems:
        out.print(Text(f"warning: {problem}", style="yellow"))
    if bad > 10:
        out.print(Text(f"warning: … and {bad - 10} more", style="yellow"))

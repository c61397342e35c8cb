"""The report on a judge, in uniform figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from pandaeval_collector.cli._output import console, print_json, print_table, safe
from pandaeval_collector.show.view.texts import interval


@dataclass(frozen=True, slots=True)
class Figure:
    """A report line.

    ``n``: number of ``unit``, 0 if not measured. ``low``, ``high``: 95 % interval. ``asks``: its question. ``needed``:
    the requirement. ``passed``: ``None`` without a requirement.
    """

    name: str
    n: int
    unit: str
    figure: str = "not measured"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    asks: str = ""
    needed: str = ""
    passed: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The figures about a judge. ``about``: facts for JSON; ``notes``: for people."""

    title: str
    about: Mapping[str, Any]
    figures: Sequence[Figure]
    notes: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        figures = {figure.name: asdict(figure) for figure in self.figures}
        return {"title": self.title, **self.about, "figures": figures, "notes": [*self.notes]}


def show_reports(reports: Sequence[JudgeReport], form: str) -> None:
    if form == "json":
        return print_json(report.to_dict() for report in reports)
    for report in reports:
        print_report(report, console())


def print_report(report: JudgeReport, out: Console) -> None:
    rows = [
        (
            figure.name,
            figure.asks,
            f"{figure.n} {figure.unit}",
            figure.figure,
            interval(figure.low, figure.high),
            figure.needed,
            _state(figure),
        )
        for figure in report.figures
    ]
    columns = ("figure", "question", "n", "value", "95 %", "needed", "")
    print_table(columns, rows, report.title, out)
    notes = [f"{figure.name}: {figure.note}" for figure in report.figures if figure.note]
    for note in (*notes, *report.notes):
        out.print(safe(note))


def _state(figure: Figure) -> Text | str:
    if figure.passed is None:
        return ""
    if figure.passed:
        return Text("pass", style="green")
    return Text("FAIL" if figure.n else "-", style="bold red")

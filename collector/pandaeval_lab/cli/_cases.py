"""Case files on the command line: read for a run, and its three-layer report as a table or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import safe, table
from pandaeval_collector.config import Config, closest
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.graders import doubts, some
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cases.trial import TrialMatcher
from pandaeval_lab.cli._ci import gate_tests, write_suites
from pandaeval_lab.cli._gates import GateOutcome
from pandaeval_lab.report.layers import LAYERS, LayerReport, json_lines, junit_suites

_MAX_ROWS = 60
_NOTHING = "-"
_EMPTY = "-: nothing was graded in this layer; reasoning and action are graded by a case's expected_tools"
_COLUMNS = ("case", "kind", "correct", *LAYERS, "broke in", "why")


def suite_of(path: Path | None, config: Config, report: Path | None) -> Suite | None:
    """Reads the cases of ``path``; ``None`` without one. Raises ``UserError``."""
    if report is not None and report.suffix not in (".json", ".xml"):
        raise UserError(f"--cases-report {report}: write a name that ends with .json, or with .xml for JUnit")
    if path is None:
        if report is not None:
            raise UserError("--cases-report needs cases: name a file with --cases")
        return None
    return read_suite(path, config.metrics.modules)


def new_report(suite: Suite, path: Path | None = None) -> LayerReport:
    """Returns an empty report of a suite; ``path``: the file that it will be written to, if any."""
    descriptions = {case.id: case.description for case in suite.cases}
    return LayerReport(suite.name, descriptions, with_trials=path is not None)


def write_layers(report: LayerReport, path: Path, gates: Sequence[GateOutcome] = ()) -> None:
    """Writes the report in the format that the file's name ends with, JUnit with the ``gates`` of the run."""
    try:
        with path.open("w", encoding="utf-8") as file:
            if path.suffix == ".xml":
                tests = gate_tests(gates)
                suites = junit_suites(report) | ({"thresholds": tests} if tests else {})
                write_suites(file, suites, report.suite or "pandaeval", "")
            else:
                file.writelines(json_lines(report))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def print_layers(report: LayerReport, out: Console) -> None:
    """Prints a table with a row for each case, and one with a row for each kind of case."""
    cases = len(report.cases())
    if not cases:
        return
    rows = report.brief(_MAX_ROWS)
    made = table(_COLUMNS, map(_row, rows), on=out, title="Cases, broken ones first")
    notes = [f"… and {cases - _MAX_ROWS} more (--cases-report has them all)"] if cases > _MAX_ROWS else []
    notes += [_EMPTY] if any(_NOTHING in row["layers"] for row in rows) else []
    if notes:
        made.caption, made.caption_justify = "\n".join(notes), "left"
    out.print(made)
    totals = [_row(told)[:-1] for told in report.by_kind()]
    out.print(table(_COLUMNS[:-1], totals, on=out, title="Cases by kind"))


def case_table(report: LayerReport) -> list[tuple[str, ...]]:
    """Returns head and rows of the table of cases, broken ones first."""
    return [_COLUMNS, *(_row(row) for row in report.brief(_MAX_ROWS))]


def no_case(option: str, name: str, suite: Path, ids: Sequence[str]) -> UserError:
    """Returns the mistake that ``option`` names a case which ``suite`` does not have, with those that are there."""
    nearest = closest(name, ids)
    there = f"the nearest is {nearest}" if nearest else f"it has {some(ids)}"
    return UserError(f"{option} {name}: {suite} has no such case; {there}")


def tell_matching(trials: TrialMatcher, suite: Suite, report: LayerReport) -> None:
    """Prints notices on traces without a case, cases without a trial, parts of cases that are probably mistakes, and
    calls that no mock answered."""
    for tools, what in (
        (report.refused, "no mock fitted, and the call was refused: say in mocks what it gets"),
        (report.past_mocks, "no mock was asked, and the tool itself answered: wrap it with mocked"),
    ):
        if tools:
            _notice(f"{what} ({', '.join(f'{tool} {count}×' for tool, count in tools.most_common(5))})")
    for line in doubts(suite):
        _notice(line)
    if trials.alike:
        (case, name), count = next(iter(trials.alike.items()))
        more = f", and so on in {len(trials.alike) - 1} more trials" if len(trials.alike) > 1 else ""
        _notice(
            f"trial {name} of {case} holds {count} runs of the same task, which are graded as one{more}: give each "
            "attempt a pandaeval.trial of its own (using_case)"
        )
    for case, count in sorted(trials.unknown.items())[:10]:
        _notice(f"{count} traces name the case {case}, which is not in the file")
    if trials.ambiguous:
        _notice(f"{trials.ambiguous} traces have the task of several cases; set pandaeval.case.id (using_case)")
    missing = trials.without_trial
    if missing:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        _notice(f"{len(missing)} of {len(suite.cases)} cases have no trial in the input: {shown}")
    if len(missing) == len(suite.cases) and trials.unmatched_said:
        _notice(
            "a trace is a trial of the case that its spans name (using_case), or whose inputs.task is what the user "
            f"says first, letter for letter, such as {trials.unmatched_said!r}"
        )


def _row(told: Mapping[str, Any]) -> tuple[str, ...]:
    unknown = f" ({told['undetermined']} not told)" if told["undetermined"] else ""
    correct = f"{told['correct']}/{told['trials']}{unknown}"
    why = excerpt(told["why"], 100) or ""
    return told["case"], told["kind"], correct, *told["layers"], told["broke"] or _NOTHING, why


def _notice(text: str) -> None:
    typer.echo(f"notice: {safe(text)}", err=True)

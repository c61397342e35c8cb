"""The output formats of an evaluation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal, TextIO

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.cli._output import console, message, output_file, write_json_line
from pandaeval_collector.store.failures import failure_of
from pandaeval_collector.store.finding import Finder
from pandaeval_lab.cli._ci import write_junit
from pandaeval_lab.cli._inputs import READ_LIMIT_S
from pandaeval_lab.cli._stages import EvaluationOutcome, Replay, Stage
from pandaeval_lab.cli._summary import MOST_FAILURES, Document
from pandaeval_lab.report.page import write_report

ResultFormat = Literal["table", "json", "junit", "html"]


class _Output(Stage):
    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._target: TextIO = sys.stdout

    def open(self, held: ExitStack) -> None:
        self._target = held.enter_context(output_file(self._path))


class _StoreOutput(_Output):
    """An output that reads the store of the run."""

    def begin(self, replay: Replay) -> None:
        self._folder = replay.files.store.path

    def finder(self) -> closing[Finder]:
        return closing(Finder(self._folder, READ_LIMIT_S))


class Tables(_StoreOutput):
    def finish(self, outcome: EvaluationOutcome) -> None:
        from pandaeval_lab.cli._tables import print_summary  # other formats print no table

        out = console(file=self._target)
        with self.finder() as finder:
            print_summary(outcome.summary, finder, out, outcome.config.judge.model)
        for stage in outcome.stages:
            stage.show(out)


class JsonLines(_Output):
    """Writes a line per result. The first :data:`MOST_FAILURES` failed results come last, with their group."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self._failed: list[Result] = []

    def take(self, result: Result, document: Document) -> None:
        if len(self._failed) < MOST_FAILURES and failure_of(result) is not None:
            self._failed.append(result)
        else:
            write_json_line(self._target, result.to_json())

    def finish(self, outcome: EvaluationOutcome) -> None:
        groups = {member.result: group.to_dict() for group in outcome.summary.groups for member in group.members}
        for result in self._failed:
            held = orjson.loads(result.to_json())
            held["metadata"]["failure_group"] = groups.get(result.id)
            write_json_line(self._target, orjson.dumps(held))


class JUnit(_Output):
    def finish(self, outcome: EvaluationOutcome) -> None:
        least = outcome.config.gates.fail_on_error_severity or ""
        cases = {name: tests for stage in outcome.stages for name, tests in stage.tests().items()}
        write_junit(self._target, outcome.gates, outcome.summary, least, cases)


class HtmlReport(_StoreOutput):
    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self._others: list[tuple[str, Document]] = []

    def take(self, result: Result, document: Document) -> None:
        if result.unit.level in ("trial", "task"):
            self._others.append((result.unit.id, document))

    def finish(self, outcome: EvaluationOutcome) -> None:
        with self.finder() as finder:
            contents = write_report(self._target, finder, outcome.about, others=self._others)
        message(f"{self._path or 'report'}: {contents}")


class SavedResults(JsonLines):
    """Writes results to a file, which is replaced only when complete."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.with_name(f"{path.name}.part"))
        self._whole = path

    def finish(self, outcome: EvaluationOutcome) -> None:
        super().finish(outcome)
        self._target.close()
        Path(self._target.name).replace(self._whole)


FORMATS: dict[ResultFormat, Callable[[Path | None], Stage]] = {
    "table": Tables,
    "json": JsonLines,
    "junit": JUnit,
    "html": HtmlReport,
}


def default_file(terminal: bool) -> Path | None:
    """Return the report's file if ``--output`` is missing. ``None``: standard output, because it is no terminal."""
    return Path("pandaeval-report.html") if terminal else None

"""Runs cases from Python: :func:`load_cases` and :func:`run_cases`."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandaeval_lab.cases.files import case_files, read_suites
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cli._case_run import CaseRun, CaseRunOptions, chosen
from pandaeval_lab.cli._gates import CASE
from pandaeval_lab.cli._names import config_with_trials

Cases = Suite | str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The trials of a case.

    ``failures``: reasons for which the case fails the run; ``reason``: of the first incorrect trial, else of the first
    trial; ``transcripts``: the conversations by trial; ``results``: the results of its trials, as in results.jsonl.
    """

    id: str
    kind: str
    trials: int
    correct: int
    undetermined: int
    failures: tuple[str, ...]
    reason: str
    transcripts: Mapping[str, str]
    results: tuple[Mapping[str, Any], ...]

    @property
    def passed(self) -> bool:
        """Whether the case does not fail the run."""
        return not self.failures

    def mean(self, metric: str) -> float | None:
        """Return the mean score of a metric, such as ``tool_correctness``, or ``None``."""
        return _mean(self.results, metric)


@dataclass(frozen=True, slots=True)
class CaseRunResults(Mapping[str, CaseOutcome]):
    """The outcome of :func:`run_cases`, by ID of the case.

    ``failures``: every reason for which the run fails; ``results``: all results, as in results.jsonl;
    ``folder``: the folder ``output``, or ``None``.
    """

    cases: Mapping[str, CaseOutcome]
    failures: tuple[str, ...]
    results: tuple[Mapping[str, Any], ...]
    folder: Path | None

    @property
    def passed(self) -> bool:
        """Whether ``pandaeval cases run`` exits with 0."""
        return not self.failures

    def mean(self, metric: str) -> float | None:
        """Return the mean score of a metric over all cases, or ``None``."""
        return _mean(self.results, metric)

    def __getitem__(self, case: str) -> CaseOutcome:
        return self.cases[case]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def __str__(self) -> str:
        return "\n".join(self.failures) or f"{len(self.cases)} cases passed"


def load_cases(cases: Cases, config: str | Path | None = None) -> Suite:
    """Read case files from a path, folder or pattern, or from several. Raises ``UserError`` for an unusable file.

    ``config``: configuration file, for custom graders (``metrics.modules``).
    """
    if isinstance(cases, Suite):
        return cases
    several = [cases] if isinstance(cases, str | Path) else cases
    modules = config_with_trials(Path(config) if config else None).metrics.modules
    return read_suites(case_files(map(str, several)), modules)


def run_cases(cases: Cases, agent: Any = None, output: str | Path | None = None, **options: Any) -> CaseRunResults:
    """Run an agent on cases, and grade it as ``pandaeval cases run`` does.

    ``agent``: a function, object or class, or a text as ``--agent``; default: the agents of the case file. ``output``:
    folder of the files. ``options``: as the options of the command, such as ``trials=3`` or ``only=["refund-*"]``.
    Blocks, and runs its own event loop. Raises ``UserError`` for wrong options, or if no attempt can be graded.
    """
    suite = load_cases(cases, options.get("config"))
    options |= {name: Path(options[name]) for name in ("config", "baseline") if options.get(name)}
    asked = CaseRunOptions([suite.name or "cases"], **options)
    with tempfile.TemporaryDirectory(prefix="pandaeval-run-") as scratch:
        folder = Path(output or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        run = CaseRun(asked, agent, chosen(suite, asked), folder, folder / "summary.txt")
        run.attempt()
        if not run.is_whole:
            raise KeyboardInterrupt
        run.evaluation.exit_code()
    return _results(run, None if output is None else folder)


def _results(run: CaseRun, folder: Path | None) -> CaseRunResults:
    found, failed = run.results, [each for each in run.results.outcomes if not each.passed]
    of_case, cases = _by_case(found.documents), dict[str, CaseOutcome]()
    for case, count in found.cases.items():
        own = (each.text for each in failed if each.key == f"{CASE}{case}")
        outcome_fields = count.kind, count.trials, count.correct[True], count.correct[None], tuple(own)
        kept = run.transcripts.of(case), tuple(of_case.get(case, ()))
        cases[case] = CaseOutcome(case, *outcome_fields, count.failed or count.first, *kept)
    return CaseRunResults(cases, tuple(each.text for each in failed), tuple(found.documents), folder)


def _by_case(documents: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Group results by the case that they name, else by the case of their session."""
    of_sessions = {each["session_id"]: each["metadata"]["case"] for each in documents if each["metadata"].get("case")}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in documents:
        if case := each["metadata"].get("case") or of_sessions.get(each["session_id"]):
            found.setdefault(case, []).append(each)
    return found


def _mean(results: Sequence[Mapping[str, Any]], metric: str) -> float | None:
    own = (each for each in results if metric in (each["metric"], f"{each['level']}.{each['metric']}"))
    scores = [each["score"] for each in own if each["score"] is not None]
    return statistics.fmean(scores) if scores else None

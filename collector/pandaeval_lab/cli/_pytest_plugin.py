"""A pytest plug-in: ``pytest --pandaeval cases/`` collects each case as a test.

Loads PandaEval only if used, because pytest imports this module in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pandaeval_lab.cli._case_api import CaseOutcome, CaseRunResults

OPTIONS = {
    "agent": "Agent of --pandaeval: module:function, ./file.py:function, an address, or a name in the case file.",
    "trials": "Number of attempts at each case.",
    "model": "Judge model in litellm format.",
    "simulate": "Model that plays the user in cases with a scenario.",
    "config": "Configuration file (YAML).",
    "output": "Write the files of each run below this folder.",
}
_SUFFIXES = (".yaml", ".yml", ".json")
_GATES = "gates"
_SCATTERED = "the cases of a file run in one process: with pytest-xdist, use --dist loadfile"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pandaeval", "PandaEval")
    group.addoption("--pandaeval", action="store_true", help="Collect each case of case files as a test.")
    for name, about in OPTIONS.items():
        group.addoption(f"--pandaeval-{name}", help=f"{about} Key in pytest's configuration: pandaeval_{name}.")
        parser.addini(f"pandaeval_{name}", about)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not parent.config.getoption("pandaeval") or file_path.suffix not in _SUFFIXES:
        return None
    from pandaeval_lab.cases.files import holds_cases

    is_named = any(Path(each.partition("::")[0]).resolve() == file_path for each in parent.config.args)
    return CaseFile.from_parent(parent, path=file_path) if is_named or holds_cases(file_path) else None


def given_options(config: pytest.Config) -> dict[str, Any]:
    """Return the options of the command line, else of the configuration."""
    given = {name: config.getoption(f"pandaeval_{name}") or config.getini(f"pandaeval_{name}") for name in OPTIONS}
    found: dict[str, Any] = {name: value for name, value in given.items() if value}
    return found | ({"trials": int(found["trials"])} if "trials" in found else {})


class CaseFailedError(Exception):
    """A case fails its run. The text has the reasons and the conversation."""


class CaseFile(pytest.File):
    """A case file: a test per case, and a test for its thresholds."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._results: CaseRunResults | Exception | None = None

    def collect(self) -> Iterator[pytest.Item]:
        from pandaeval_collector.base.errors import UserError
        from pandaeval_lab.cli._case_api import load_cases

        if hasattr(self.config, "workerinput") and self.config.getoption("dist", "") != "loadfile":
            raise self.CollectError(_SCATTERED)
        try:
            suite = load_cases(self.path)
        except UserError as error:
            raise self.CollectError(str(error)) from error
        for case in suite.cases:
            yield CaseItem.from_parent(self, name=case.id)
        yield GatesItem.from_parent(self, name=_GATES)

    def results(self) -> CaseRunResults:
        """Run the selected cases of this file once."""
        from pandaeval_lab.cli._case_api import run_cases

        if self._results is None:
            options = given_options(self.config)
            if "output" in options:
                options["output"] = Path(options["output"], self.path.stem)
            selected = [each for each in self.session.items if each.parent is self and isinstance(each, CaseItem)]
            try:
                self._results = run_cases(self.path, only=[escape(each.name) for each in selected], **options)
            except Exception as error:  # noqa: BLE001 - each case fails for it, without another run
                self._results = error
        if isinstance(self._results, Exception):
            raise self._results
        return self._results


class _Item(pytest.Item):
    parent: CaseFile

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from pandaeval_collector.base.errors import UserError

        if isinstance(excinfo.value, CaseFailedError | UserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class CaseItem(_Item):
    """A case as a test. A capability case that is not correct is an expected failure."""

    def runtest(self) -> None:
        outcome = self.parent.results()[self.name]
        self.user_properties.append(("correct", f"{outcome.correct} of {outcome.trials}"))
        if not outcome.passed:
            raise CaseFailedError("\n".join(_told(outcome)))
        if outcome.undetermined == outcome.trials:
            pytest.skip(outcome.reason or "no grader could decide")
        if 2 * outcome.correct <= outcome.trials:
            pytest.xfail(outcome.reason)


class GatesItem(_Item):
    """The thresholds of a run that belong to no case."""

    def runtest(self) -> None:
        results = self.parent.results()
        of_cases = {text for each in results.values() for text in each.failures}
        failures = [text for text in results.failures if text not in of_cases]
        if failures:
            raise CaseFailedError("\n".join(failures))


def _told(outcome: CaseOutcome) -> Iterator[str]:
    yield from outcome.failures
    for trial, text in outcome.transcripts.items():
        yield f"\ntrial {trial}:\n{text}"

"""``pandaeval evaluate``: scores stored traces."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Literal, TextIO
from urllib.parse import urlsplit
from urllib.request import getproxies

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.runtime.cores import usable_cores
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.cli._options import config_option, declared, file_option, output_option
from pandaeval_collector.cli._output import console, progress, safe
from pandaeval_collector.config import Config, masked, secret
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_collector.runs.front import MOST_WORKERS, close_rules
from pandaeval_collector.runs.settings import evaluator, judge
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store.failures import Failure
from pandaeval_lab.cases.grading import TrialGrader
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cases.trial import TrialMatcher
from pandaeval_lab.cli._cases import case_table, new_report, print_layers, suite_of, tell_matching, write_layers
from pandaeval_lab.cli._ci import add_summary, write_junit
from pandaeval_lab.cli._gates import Against, GateOutcome, checked, outcome, tell, unanswered, with_groups
from pandaeval_lab.cli._inputs import Inputs
from pandaeval_lab.cli._names import check_asked, config_with_trials
from pandaeval_lab.cli._scenarios import Scenarios
from pandaeval_lab.cli._summary import MOST_FAILURES, Summary
from pandaeval_lab.cli._tables import print_component_errors, print_problems, print_summary
from pandaeval_lab.cli._where import HELP as WHERE
from pandaeval_lab.cli._where import Chooser, attribute_keys, parse_where
from pandaeval_lab.cli._writing import output_file, write_json_line
from pandaeval_lab.cli.report import default_file, write_report
from pandaeval_lab.passk.gate import GateVerdict
from pandaeval_lab.replay.fileworkers import FEW, FileSetup, FileWorkers
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.root_causes import RootCause, by_code
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.collect import ReportOrigin

if TYPE_CHECKING:
    from pandaeval_lab.replay.judge import ReplayJudge

ResultFormat = Literal["table", "json", "junit", "html"]
"""The formats in which results are written."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """The options of the command."""

    files: Annotated[
        list[str],
        typer.Argument(
            help="OTLP/JSON lines or length-delimited protobuf, or what Jaeger or Tempo answers; also .gz .xz .zst; "
            "- is standard input. Or the address of a trace store: 'jaeger://HOST:16686?service=NAME&since=2h', "
            "'tempo://HOST:3200?service=NAME'."
        ),
    ]
    config: Annotated[Path | None, config_option("Configuration file (YAML).")] = None
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Only these metrics, comma-separated. What a session metric reads of its traces is computed with it, "
            "as far as that asks no judge, and not shown."
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="Judge with this model, as litellm spells it, such as openai/gpt-4o: every judged metric, those too "
            "that judge.models gives another."
        ),
    ] = None
    cases: Annotated[
        Path | None, file_option("Case file (YAML or JSON): traces that are trials of its cases are graded.")
    ] = None
    cases_report: Annotated[
        Path | None, file_option("Write the three-layer report of the cases to this file: .json, or .xml for JUnit.")
    ] = None
    where: Annotated[list[str] | None, typer.Option(help=WHERE, metavar="KEY=VALUE")] = None
    baseline: Annotated[
        Path | None,
        file_option("Results of an earlier run, as JSON lines: leave with 1 when trials do worse than in it."),
    ] = None
    format: Annotated[
        ResultFormat,
        typer.Option(
            "--format",
            help="table is for people, json one result a line, junit XML for CI systems, html a report in one file.",
        ),
    ] = "table"
    output: Annotated[Path | None, output_option("Write results to this file instead of standard output.")] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Processes beside this one that read and score the traces; a search that hangs ends one of them, "
            "where it would hold this one. Else one for each core but one for large files, none for small ones. With "
            "--where, --cases or html this process does it all.",
            show_default=False,
        ),
    ] = None

    @property
    def names(self) -> list[str] | None:
        """The names in ``metrics``. Raises ``UserError`` for none: an unset variable must not mean all."""
        if self.metrics is None:
            return None
        names = [name.strip() for name in self.metrics.split(",") if name.strip()]
        if not names:
            raise UserError("--metrics names no metric: leave it out for all of them; `pandaeval metrics` lists them")
        return names


@in_place_of("options", declared(EvaluateOptions), EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    """Score stored traces with the same line that a running collector has.

    Leaves with 1 when a configured threshold is missed, a failure is too grave (gates.*) or trials do worse than a
    baseline's, with 2 when the input, or a file of it, cannot be used.
    """
    Evaluation(options).run()


_WAIT_S, _PART = 2.0, "results.jsonl.part"
_PORTS = {"http": 80, "https": 443}


class Evaluation:
    """One run of the command. The constructor checks all options and files that the run needs besides its inputs, so
    that a mistake ends the command before anything is read: it raises ``UserError``."""

    def __init__(self, options: EvaluateOptions, suite: Suite | None = None, folder: Path | None = None) -> None:
        """``suite``: in place of the file ``options.cases``; ``folder``: gets results.jsonl and report.html besides."""
        self._options, self._folder = options, folder
        where = parse_where(options.where or ())
        self._config = config_of(options, attribute_keys(where))
        baseline, gates = options.baseline, self._config.gates
        self._against = None if baseline is None else Against(baseline, gates)
        self._suite = suite or suite_of(options.cases, self._config, options.cases_report)
        self._layers = None if self._suite is None else new_report(self._suite, options.cases_report)
        self._chooser = None if where is None else Chooser(where)
        self._summary = Summary(self._layers, self._against)
        self._matcher = None if self._suite is None else TrialMatcher(self._suite)
        self._scenarios: Scenarios | None = None
        if self._suite is not None and self._matcher is not None:
            self._scenarios = Scenarios(self._config, self._suite, self._matcher.case_of_session)
            self._summary.also = self._scenarios.take
        self._inputs, self._telemetry = Inputs(options.files), Telemetry()
        self._output = options.output
        if self._output is None and options.format == "html":
            self._output = default_file(sys.stdout.isatty())

    def run(self) -> None:
        """Runs it. Raises ``typer.Exit``: 1 if a gate or the baseline is failed, 2 if an input was unusable."""
        scorer = evaluator(self._config)
        with (
            progress(console(stderr=True)) as on_judged,
            self._layers or nullcontext(),
            TraceFiles(close_rules(self._config)) as files,
            self._judge(files, scorer, on_judged) as asked,
            output_file(self._output) as target,
            nullcontext() if self._folder is None else output_file(self._folder / _PART) as lines,
            nullcontext(target) if self._folder is None else output_file(self._folder / "report.html") as page,
        ):
            self._summary.lines = lines
            files.add_all(self._inputs)
            self._score(files, scorer, asked, page)
            if self._chooser is not None and self._chooser.unknown:
                raise UserError(self._chooser.unknown)
            print_problems(console(stderr=True), files.read.problems, files.read.bad)
            raised = self._telemetry.component_errors()
            if self._options.format != "table":
                print_component_errors(console(stderr=True), raised)
            else:
                print_summary(self._summary, console(file=target), self._config.judge.model, raised)
                if self._layers is not None:
                    print_layers(self._layers, console(file=target))
                if self._scenarios is not None:
                    self._scenarios.show(console(file=target))
            gates, verdict = self._gates()
            if self._layers is not None and self._suite is not None and self._matcher is not None:
                tell_matching(self._matcher, self._suite, self._layers)
                if self._options.cases_report is not None:
                    write_layers(self._layers, self._options.cases_report, gates)
            if self._options.format == "junit":
                write_junit(target, gates, self._summary, self._config.gates.fail_on_error_severity or "")
        if self._folder is not None:  # a run that was killed leaves the results of the last whole one
            (self._folder / _PART).replace(self._folder / "results.jsonl")
        self._tell_what_is_missing()
        for gate in gates:
            if gate.text and gate.key != "baseline":
                typer.echo(f"{'notice' if gate.passed else 'failed'}: {gate.text}", err=True)
                for example in gate.examples:
                    typer.echo(f"  {safe(example)}", err=True)
        cases = [] if self._layers is None else case_table(self._layers)
        if problem := add_summary(gates, self._summary, os.environ, cases):
            typer.echo(f"notice: {problem}", err=True)
        if verdict is not None:
            tell(verdict)
        self._inputs.leave_if_unusable()
        if self._options.model is not None and self._summary.silence:
            raise UserError(f"--model {self._options.model}: {self._summary.silence}")
        if not all(gate.passed for gate in gates):
            raise typer.Exit(1)

    def _gates(self) -> tuple[list[GateOutcome], GateVerdict | None]:
        """Returns the outcomes of all gates, and the comparison with a baseline if there is one."""
        gates = checked(self._config, self._summary)
        gates += [] if self._scenarios is None else self._scenarios.gates(self._summary)
        if self._against is None:
            return gates, None
        verdict = self._against.verdict()
        return [*gates, outcome(verdict)], verdict

    def _judge(
        self, files: TraceFiles, scorer: Evaluator, on_judged: Callable[[int, int], None]
    ) -> ReplayJudge | nullcontext[None]:
        config = judge(self._config)
        if config is None:
            return nullcontext()
        from pandaeval_lab.replay.judge import ReplayJudge  # what asks models is a third of all modules

        return ReplayJudge(files.store, scorer, config, os.environ, telemetry=self._telemetry, on_judged=on_judged)

    def _workers(self, files: TraceFiles, scorer: Evaluator) -> FileWorkers | nullcontext[None]:
        """Starts the processes that score beside this one, where there are to be any and nothing here needs spans."""
        options = self._options
        spans_are_needed = options.format == "html" or self._chooser is not None or self._suite is not None
        if spans_are_needed or (options.workers is None and files.read.items < FEW):
            return nullcontext()
        number = options.workers or max(1, min(usable_cores() - 1, MOST_WORKERS))
        setup = FileSetup(files.store.path, self._config.embedding.model, scorer.settings)
        return FileWorkers(number, setup, os.environ)

    def _results(
        self, files: TraceFiles, scorer: Evaluator, asked: ReplayJudge | None, on_decided: Callable[[Conclusion], None]
    ) -> Iterator[Result]:
        """Yields the results of traces and sessions, then those of trials."""
        suite, layers, matcher = self._suite, self._layers, self._matcher

        def wanted(run: Run) -> bool:
            if matcher is not None and run.trace is not None and matcher.take_spoilt(run.trace):
                return False
            return self._chooser is None or self._chooser(run)

        def decided(decision: Conclusion) -> None:
            if matcher is not None:
                matcher.add(decision.traces)
            on_decided(decision)

        with self._workers(files, scorer) as workers:
            yield from replay(
                files,
                scorer,
                asked,
                where=self._chooser if suite is None else wanted,
                on_decided=decided,
                ahead=None if workers is None else workers.understood,
            )
        if suite is not None and layers is not None and matcher is not None:
            from pandaeval_lab.replay.trial_grading import graded  # it may ask models

            grader = TrialGrader(scorer, suite, layers.add)
            yield from graded(files, grader, matcher, asked, self._config.trials.k)

    def _score(self, files: TraceFiles, scorer: Evaluator, asked: ReplayJudge | None, target: TextIO) -> None:
        """Fills the summary, and writes JSON lines or the HTML report, which are written as results come."""
        results = partial(self._results, files, scorer, asked)
        grouped: Callable[[Sequence[Failure]], tuple[RootCause, ...]] = by_code
        if asked is not None:
            from pandaeval_lab.replay.grouping import grouped_by  # it asks a model

            grouped = partial(grouped_by, asked)
        if self._options.format == "html" or self._folder is not None:
            with progress(console(stderr=True), "scoring") as on_scored:
                # Of a path only the file's name, since reports are passed on.
                names = (PurePath(source).name.encode("utf-8", "replace").decode() for source in self._options.files)
                origin = ReportOrigin(
                    sources=["standard input" if name == "-" else name for name in names],
                    judge=self._config.judge.model,
                    where="" if self._chooser is None else self._chooser.where.text,
                    modules=scorer.settings.modules,
                )
                told = write_report(
                    files,
                    results,
                    self._summary,
                    target,
                    origin,
                    grouped=grouped,
                    on_scored=on_scored,
                    failed_gates=lambda: [gate.text for gate in self._gates()[0] if not gate.passed],
                )
            typer.echo(f"{target.name if self._folder else self._output or 'report'}: {told}", err=True)
            return
        as_json = self._options.format == "json"
        ungrouped: list[Result] = []  # written when their groups are known, as many as are grouped
        spans, size, scored = files.read.items, files.read.stored_bytes, 0
        with progress(console(stderr=True), "scoring") as on_scored:

            def decided(decision: Conclusion) -> None:
                nonlocal scored
                self._summary.runs(decision.told)
                scored += sum(trace.size for trace in decision.changes.traces)
                on_scored(round(spans * scored / size) if size else spans, spans)  # as large as all others

            for result in results(decided):
                failed = self._summary.take(result) is not None
                if as_json and failed and len(ungrouped) < MOST_FAILURES:
                    ungrouped.append(result)
                elif as_json:
                    write_json_line(target, result.to_json())
        self._summary.groups = grouped(self._summary.failures)
        for line in with_groups(ungrouped, self._summary.groups):
            write_json_line(target, line)

    def _tell_what_is_missing(self) -> None:
        """Prints why expected results are missing. With JSON output it reports only metrics and traces that were asked
        for."""
        quiet, chooser, matcher = self._options.format == "json", self._chooser, self._matcher
        if chooser is not None and (not chooser.chosen or not quiet):
            typer.echo(f"notice: {chooser.told()}", err=True)
        if self._summary.agents_traces:
            for line in unanswered(self._config, self._summary, self._options.names or ()):
                typer.echo(f"notice: {line}", err=True)
        elif not quiet and not (chooser is not None and chooser.left_out) and not (matcher and matcher.attempts()):
            typer.echo("No agent traces in this input: `pandaeval inspect` shows what was understood.", err=True)


def config_of(options: EvaluateOptions, attributes: Sequence[str] = ()) -> Config:
    """Returns the configuration with the command's options, and ``attributes`` to choose traces by. Raises
    ``UserError`` for an option or file that cannot be used, and for a judge that could never be asked. Prints a notice
    if the judge's server cannot be reached now."""
    given: dict[str, object] = {"metrics.enabled": options.names, "judge.model": options.model}
    given["store.listed_attributes"] = attributes or None
    if options.model is not None:
        known = registry(config_with_trials(options.config).metrics.modules)
        given["judge.models"] = {key: options.model for key, metric in known.items() if metric.model is not None}
    config = config_with_trials(options.config, given)
    check_asked(config, options.names or (), options.cases is not None)
    if config.judge.model is not None:
        from pandaeval_collector.jobs.setup import check_installed  # no other run needs that room

        check_installed(config.judge.api_base)
        secret(config.judge.api_key_env, os.environ)
        if config.judge.api_base is not None and (why := unreachable(config.judge.api_base)):
            shown = masked(config.judge.api_base)
            cure = "see whether it is up, and judge.api_base right; what needs no judge is scored all the same"
            typer.echo(f"notice: the judge's server {shown} cannot be reached ({why}): {cure}", err=True)
    return config


def unreachable(api_base: str) -> str:
    """Returns in a few words why nobody answers at a URL; ``""`` where somebody does, where a proxy is between, or
    where there is no answer of either kind within two seconds."""
    url = urlsplit(api_base if "://" in api_base else f"http://{api_base}")
    if url.hostname is None or getproxies().keys() & {"http", "https", "all"}:
        return ""
    try:
        socket.create_connection((url.hostname, url.port or _PORTS.get(url.scheme, 443)), _WAIT_S).close()
    except TimeoutError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""

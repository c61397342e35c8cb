"""``pandaeval evaluate``: scores stored traces."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.cli._config import ConfigFile
from pandaeval_collector.cli._options import argument, file_option, given_by, option, output_option
from pandaeval_collector.cli._output import message, notice, progress
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import evaluator, judge
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.metric import JudgedMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cli._baseline import BASELINE, BaselineStage
from pandaeval_lab.cli._cases import CaseStage
from pandaeval_lab.cli._ci import error_annotation
from pandaeval_lab.cli._formats import FORMATS, ResultFormat, default_file
from pandaeval_lab.cli._gates import CaseGates, GateOutcome, checked, unscored_notes
from pandaeval_lab.cli._inputs import FILES, Inputs, print_problems
from pandaeval_lab.cli._names import check_judge_is_set, config_with_trials
from pandaeval_lab.cli._stages import EvaluationOutcome, Replay, Stage
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.cli._where import HELP as WHERE, TraceFilter, attribute_keys, parse_where
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.root_causes import RootCause, by_code
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.page import ReportOrigin

if TYPE_CHECKING:
    from pandaeval_lab.replay.judge import ReplayJudge

_SHOWN_GROUPS = 100
_OUTPUT = "Write to this file; default: standard output, or in a terminal for html, pandaeval-report.html."


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    files: Annotated[list[str], argument(FILES)]
    config: ConfigFile = None
    metrics: Annotated[str | None, option("Metrics to run, separated by commas; default: metrics.enabled.")] = None
    model: Annotated[
        str | None,
        option("Judge model in litellm format, such as openai/gpt-4o. Overrides judge.model and judge.models."),
    ] = None
    cases: Annotated[Path | None, file_option("File of cases. Grade the traces that are trials of these cases.")] = None
    where: Annotated[list[str] | None, option(WHERE, metavar="KEY=VALUE")] = None
    baseline: Annotated[
        Path | None,
        file_option("Earlier results (JSON lines). If trials do worse, exit with 1."),
    ] = None
    format: Annotated[
        ResultFormat, option("Output format: table, JSON lines, JUnit XML or an HTML report.", "--format")
    ] = "table"
    output: Annotated[Path | None, output_option(_OUTPUT)] = None

    @property
    def names(self) -> list[str] | None:
        """The names in ``metrics``. Raises ``UserError`` if there is no name, such as for an unset variable."""
        if self.metrics is None:
            return None
        names = [name.strip() for name in self.metrics.split(",") if name.strip()]
        if not names:
            raise UserError("--metrics names no metric; omit it for all metrics, or see `pandaeval metrics`")
        return names


@given_by("options", EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    """Score stored traces as a running collector does.

    Files contain OTLP/JSON lines, OTLP protobuf, or responses of Jaeger or Tempo (also .gz, .xz, .zst). To read a trace
    store, write 'jaeger://HOST:16686?service=NAME&since=2h' or 'tempo://HOST:3200?service=NAME'.

    A session metric also runs the trace metrics that it needs, except judged metrics.

    The keys of --where are agent, service, environment, user, session, label, attribute=KEY=VALUE, status=error|ok and
    time=FROM..TO (RFC 3339, a day in UTC, or an age such as 7d). A trace must match all keys. If a key is repeated, any
    of its values matches.

    Exit code 1: a threshold is missed, a failure is too severe (gates.*), or trials do worse than in the baseline. A
    failing case does not change the exit code, unless you set a threshold for trial.trial_correct.

    Exit code 2: an input cannot be used, or the judge answers no question.
    """
    if code := Evaluation(options).exit_code():
        raise typer.Exit(code)


class Evaluation:
    """An evaluation of files. Checks options before anything is read. Raises ``UserError``."""

    def __init__(
        self,
        options: EvaluateOptions,
        suite: Suite | None = None,
        outputs: Sequence[Stage] = (),
        case_gates: CaseGates | None = None,
    ) -> None:
        """``suite``: replaces ``options.cases``; ``outputs``: further stages; ``case_gates``: rules by which cases fail
        the run.
        """
        self._options = options
        where = parse_where(options.where or ())
        has_cases = suite is not None or options.cases is not None
        self._config = config = config_of(options, attribute_keys(where), has_cases)
        output = options.output
        if output is None and options.format == "html":
            output = default_file(sys.stdout.isatty())
        self._stages = [FORMATS[options.format](output), *outputs]
        if suite is None and options.cases is not None:
            suite = read_suite(options.cases, config.metrics.modules)
        if suite is not None:
            self._stages.append(CaseStage(suite, case_gates))
        if where is not None:
            self._stages.append(TraceFilter(where))
        if options.baseline is not None:
            self._stages.append(BaselineStage(options.baseline, config.gates))
        self._summary = Summary()
        self._inputs, self._telemetry = Inputs(options.files), Telemetry()

    def exit_code(self) -> int:
        """Evaluate, and return 1 if a gate fails. Raises ``UserError`` if an input is unusable."""
        scorer = evaluator(self._config)
        with ExitStack() as held:
            on_judged = held.enter_context(progress("judging"))
            files = held.enter_context(TraceFiles(close_rules(self._config)))
            judge = held.enter_context(self._judge(files, scorer, on_judged))
            for stage in self._stages:
                stage.open(held)
            files.add_all(self._inputs)
            run = Replay(files, scorer, judge)
            for stage in self._stages:
                stage.begin(run)
            for result in self._results(run):
                document = result.to_dict()
                self._summary.take(result, document)
                for stage in self._stages:
                    stage.take(result, document)
            self._summary.groups = self._groups(judge)
            print_problems(files.read, self._telemetry)
            outcome = self._outcome(files)
            for stage in self._stages:
                stage.finish(outcome)
        self._tell(outcome)
        self._inputs.check()
        if self._summary.silence:
            raise UserError(f"judge model {self._config.judge.model}: {self._summary.silence}")
        return int(not all(gate.passed for gate in outcome.gates))

    def _judge(
        self, files: TraceFiles, scorer: Evaluator, on_judged: Callable[[int, int], None]
    ) -> ReplayJudge | nullcontext[None]:
        config = judge(self._config)
        if config is None:
            return nullcontext()
        from pandaeval_lab.replay.judge import ReplayJudge  # the modules that call models are a third of all modules

        return ReplayJudge(files.store, scorer, config, os.environ, telemetry=self._telemetry, on_judged=on_judged)

    def _results(self, run: Replay) -> Iterator[Result]:
        read, scored = run.files.read, 0

        def keep(run: ScoredTrace) -> bool:
            return all(stage.keep(run) for stage in self._stages)

        def decided(conclusion: Conclusion) -> None:
            nonlocal scored
            self._summary.decided(conclusion)
            for stage in self._stages:
                stage.decided(conclusion)
            scored += sum(trace.size for trace in conclusion.changes.traces)
            done = scored / read.stored_bytes if read.stored_bytes else 1.0
            on_scored(round(read.items * done), read.items)  # spans of average size

        with progress("scoring") as on_scored:
            yield from replay(run.files, run.scorer, run.judge, where=keep, on_decided=decided)
            for stage in self._stages:
                yield from stage.conclude()

    def _groups(self, judge: ReplayJudge | None) -> tuple[RootCause, ...]:
        if judge is None:
            return by_code(self._summary.failures)
        from pandaeval_lab.replay.grouping import grouped_by  # imports what calls models

        return grouped_by(judge, self._summary.failures)

    def _outcome(self, files: TraceFiles) -> EvaluationOutcome:
        self._summary.count(files.store.reads.connection())
        gates = checked(self._config, self._summary)
        parts: dict[str, object] = {}
        for stage in self._stages:
            gates += stage.gates(self._summary)
            parts |= stage.about()
        # People share reports, so reports name files without their folders.
        names = [PurePath(source).name.encode("utf-8", "replace").decode() for source in self._options.files]
        about = ReportOrigin(
            sources=["standard input" if name == "-" else name for name in names],
            judge=self._config.judge.model,
            requests=files.read.requests,
            items=files.read.items,
            unreadable=files.read.bad,
            problems=tuple(files.read.problems),
            without_agents=self._summary.without_agents,
            left_out=self._summary.left_out,
            failures=[_shown(group) for group in self._summary.groups[:_SHOWN_GROUPS]],
            modules=self._config.metrics.modules,
            gates=[gate.text for gate in gates if not gate.passed],
            **parts,  # type: ignore[arg-type]
        )
        return EvaluationOutcome(
            self._config, self._summary, gates, about, self._stages, self._options.format == "json"
        )

    def _tell(self, outcome: EvaluationOutcome) -> None:
        summary = self._summary
        if summary.agents_traces:
            for line in unscored_notes(self._config, summary, self._options.names or ()):
                notice(line)
        elif not outcome.is_json and not summary.left_out:
            message("No agent traces in this input. `pandaeval inspect` shows how it was read.")
        for gate in outcome.gates:
            if gate.key != BASELINE:
                _tell_gate(gate)


def _shown(group: RootCause) -> dict[str, object]:
    examples = [{"place": failure.place, "trace": failure.trace_id} for failure in group.examples]
    return {**group.to_dict(), "examples": examples}


def _tell_gate(gate: GateOutcome) -> None:
    if not gate.text:
        return
    if not gate.passed and (annotation := error_annotation(gate, os.environ)):
        message(annotation)
    message(f"{'notice' if gate.passed else 'failed'}: {gate.text}")
    for example in gate.examples:
        message(f"  {example}")


def config_of(options: EvaluateOptions, attributes: Sequence[str] = (), has_cases: bool = False) -> Config:
    """Return the configuration with the command's options. Raises ``UserError``.

    ``attributes``: keys that select traces. ``has_cases``: the judge answers every question: cases have
    thresholds.
    """
    given: dict[str, object] = {"metrics.enabled": options.names, "judge.model": options.model}
    given["store.listed_attributes"] = attributes or None
    given["judge.detail"] = "all" if has_cases else None
    if options.model is not None:
        known = registry(config_with_trials(options.config).metrics.modules)
        own = (metric for metric in known.values() if isinstance(metric, JudgedMetric) and metric.model is not None)
        given["judge.models"] = {metric.key: options.model for metric in own}
    config = config_with_trials(options.config, given)
    check_judge_is_set(config, options.names or (), has_cases)
    if config.judge.model is not None:
        from pandaeval_lab.cli._judges import check_judge  # imports what calls models

        check_judge(config)
    return config

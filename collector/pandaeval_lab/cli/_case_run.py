"""``pandaeval cases run``: runs the agent on every case and grades its spans."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import parse_duration
from pandaeval_collector.cli._config import ConfigFile
from pandaeval_collector.cli._options import argument, file_option, given_by, option
from pandaeval_collector.cli._output import many, message, notice, progress
from pandaeval_collector.config import Config
from pandaeval_lab.cases.files import case_files, read_suites
from pandaeval_lab.cases.graders import mock_warnings
from pandaeval_lab.cases.model import Case, Suite
from pandaeval_lab.cli._case_results import CollectedResults, Transcripts
from pandaeval_lab.cli._cases import no_case
from pandaeval_lab.cli._formats import HtmlReport, JUnit, SavedResults
from pandaeval_lab.cli._gates import CaseGates
from pandaeval_lab.cli._judges import JudgeModel, judge_of, settings_of
from pandaeval_lab.cli._names import config_with_trials
from pandaeval_lab.cli._reachable import unreachable
from pandaeval_lab.cli.evaluate import EvaluateOptions, Evaluation
from pandaeval_lab.running.agent import Agent
from pandaeval_lab.running.arrivals import Arrivals, owners_of
from pandaeval_lab.running.attempts import Attempted, CaseAttempts, Tracing, messages_of, unless_interrupted
from pandaeval_lab.running.kinds import entry_of, start
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_lab.running.mocked import use_mocks
from pandaeval_lab.running.python_agent import object_agent
from pandaeval_lab.running.receiver import SpanReceiver
from pandaeval_lab.running.simulated import Simulator

_FILES = "Case files (YAML or JSON), folders of case files, or patterns such as 'cases/**/*.yaml'."
_AGENT = "Function (module:function), address or name; default: agent of the case, else the first agent."
_SIMULATE = "Model that plays the user in cases with a scenario, in litellm format. The judge.* settings apply."
_OUTPUT = "Write traces.pb, results.jsonl, report.html and cases.xml to this folder."
_BASELINE = "results.jsonl of an earlier run. If trials do worse, exit with 1."
_ONLY = "Run only these cases; * matches any text. Repeatable."
_VERBOSE = "Print the conversations, with tool calls."
_NO_FAIL = "Report failing cases and scenarios, but ignore them in the exit code."
_TEMPERATURE = 0.7
"""Temperature of the simulated user, unless judge.parameters sets it."""
_ENDPOINT = "PANDAEVAL_ENDPOINT"
_OBJECT = "the given object"
"""Name of an agent that is a Python object."""


@dataclass(frozen=True, slots=True)
class CaseRunOptions:
    files: Annotated[list[str], argument(_FILES, metavar="FILE...")]
    agent: Annotated[str | None, option(_AGENT, metavar="AGENT")] = None
    trials: Annotated[int, option("Number of attempts at each case. A scenario can require more.", min=1)] = 1
    simulate: Annotated[str | None, option(_SIMULATE, metavar="MODEL")] = None
    seed: Annotated[int, option("Random seed of the simulated conversations.")] = 0
    concurrency: Annotated[int, option("Number of parallel attempts.", min=1, max=256)] = 4
    turn_timeout: Annotated[str, option("Maximum time of a turn.", metavar="TIME")] = "2m"
    case_timeout: Annotated[str, option("Maximum time of an attempt.", metavar="TIME")] = "10m"
    wait: Annotated[str, option("Maximum time to wait for the last spans.", metavar="TIME")] = "1m"
    only: Annotated[list[str] | None, option(_ONLY, metavar="CASE")] = None
    config: ConfigFile = None
    metrics: Annotated[str | None, option("Metrics to run, separated by commas; default: metrics.enabled.")] = None
    model: JudgeModel = None
    baseline: Annotated[Path | None, file_option(_BASELINE)] = None
    no_fail: Annotated[bool, option(_NO_FAIL, "--no-fail")] = False
    verbose: Annotated[bool, option(_VERBOSE, "--verbose", "-v")] = False
    output: Annotated[Path, option(_OUTPUT, "--output", "-o", metavar="FOLDER")] = Path("pandaeval-run")

    def seconds(self, name: str) -> float:
        """Return a duration option. Raises ``UserError``."""
        text = getattr(self, name)
        try:
            return parse_duration(text)
        except ValueError as error:
            raise UserError(f"--{name.replace('_', '-')} {text}: {error}") from None


@given_by("options", CaseRunOptions)
def run(options: CaseRunOptions) -> None:
    """Run the agent on every case, and grade the trials.

    The agent can be a function that takes (message, context) and returns a text, or a coroutine. It can also be an
    object with a method `send`, or an HTTP address, which gets a POST for each turn.

    Each turn is a trace. Its first span and its baggage name the case, the trial and the session. This command runs a
    collector for the spans. If the agent is an address, this collector listens on server.grpc and server.http (4327,
    4328). If you press Ctrl-C, the command grades the finished attempts.

    Exit code 1: a regression case or a scenario fails, a gate fails, or no attempt finishes. A case fails if most of
    its trials are incorrect. It also fails if no trial is correct and a trial has no score.

    Exit code 2: an option cannot be used, or no attempt can be graded.
    """
    modules = config_with_trials(options.config).metrics.modules
    suite = chosen(read_suites(case_files(options.files), modules), options)
    made = CaseRun(options, options.agent, suite, options.output)
    for line in mock_warnings(suite):
        notice(line)
    code = made.evaluation.exit_code() if made.attempt() else 0
    if not made.is_whole:
        raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


class CaseRun:
    """The attempts of an agent at the cases of a suite, and their grades. Raises ``UserError`` for wrong options."""

    def __init__(
        self, options: CaseRunOptions, agent: Any, suite: Suite, folder: Path, summary: Path | None = None
    ) -> None:
        """``agent``: as ``--agent``, or a Python object; ``summary``: file of the tables; default: standard output."""
        self.options, self.folder, self._target = options, folder, agent
        self.config = config_with_trials(options.config)
        self.limits = options.seconds("turn_timeout"), options.seconds("case_timeout"), options.seconds("wait")
        name = agent if agent is None or isinstance(agent, str) else _OBJECT
        names = {case.id: _agent(name, suite, case) for case in suite.cases}
        self.entries = {each: entry_of(each, suite) for each in names.values()}
        for entry in self.entries.values():
            if entry.url and (why := unreachable(entry.url)):
                raise UserError(f"the agent {entry.place} cannot be reached ({why}): start it first")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()  # reported now, not after all attempts
        except OSError as error:
            raise UserError(f"--output {folder}: {error.strerror}; name a writable folder") from error
        run_id = secrets.token_hex(4)
        self.attempts = [
            Attempted(case, str(trial), f"{case.id}/{trial}/{run_id}", agent=names[case.id])
            for case in suite.cases
            for trial in range(1, max(options.trials, case.scenario.conversations if case.scenario else 1) + 1)
        ]
        self.is_whole = True
        self.results, self.transcripts = CollectedResults(), Transcripts(suite, options.verbose)
        graded = {each: getattr(options, each) for each in ("config", "metrics", "model", "baseline")}
        saved = SavedResults(folder / "results.jsonl"), HtmlReport(folder / "report.html"), JUnit(folder / "cases.xml")
        self.evaluation = Evaluation(
            EvaluateOptions([str(folder / "traces.pb")], output=summary, **graded),
            suite,
            outputs=(*saved, self.transcripts, self.results),
            case_gates=CaseGates(self.attempts, options.no_fail),
        )
        self.simulation: Config | None = None
        if options.simulate is not None:
            parameters = {"temperature": _TEMPERATURE, **self.config.judge.parameters, "seed": options.seed}
            self.simulation = settings_of(options.config, options.simulate, {"judge.parameters": parameters})

    def start(self, name: str, held: AsyncExitStack, replies: MockReplies) -> Agent:
        """Return an agent, which lives while ``held`` is open. Raises ``UserError``."""
        if name == _OBJECT:
            return object_agent(self._target, _OBJECT, replies)
        return start(self.entries[name], held, replies)

    def attempt(self) -> bool:
        """Make the attempts. Returns whether any attempt ended."""
        self.is_whole = asyncio.run(_run(self))
        ended = [attempt for attempt in self.attempts if attempt.has_ended]
        if not self.is_whole:
            finished = f"{len(ended)} of {many(len(self.attempts), 'attempt')}"
            notice(f"interrupted; {finished} had finished")
        _tell("the agent failed in", [(each, each.error) for each in ended if each.error])
        _tell(
            "the simulated user failed (no score; the traces are in simulator_failed.pb) in",
            [(each, each.spoilt) for each in ended if each.spoilt],
        )
        return bool(ended)


def _tell(what: str, attempts: Sequence[tuple[Attempted, str]]) -> None:
    if attempts:
        first, why = attempts[0]
        notice_text = f"{what} {many(len(attempts), 'attempt')}; {first.case.id}, trial {first.trial}: {why}"
        notice(notice_text)


async def _run(run: CaseRun) -> bool:
    options, attempts, entries = run.options, run.attempts, run.entries
    turn_s, case_s, wait_s = run.limits
    async with AsyncExitStack() as held:
        is_remote = any(entry.is_remote for entry in entries.values())
        is_here = any(entry.python for entry in entries.values())
        receiver = await held.enter_async_context(SpanReceiver(run.config if is_remote else None))
        held.callback(_set_endpoint, os.environ.get(_ENDPOINT))
        _set_endpoint(receiver.grpc)
        replies = MockReplies([attempt.case for attempt in attempts])
        if is_here and any(attempt.case.is_mocked for attempt in attempts):
            use_mocks(replies)
            held.callback(use_mocks, None)
        agents = {name: run.start(name, held, replies) for name in entries}
        tracing = Tracing(receiver.grpc, here=is_here)
        held.callback(tracing.close)
        simulator = await _simulator(run, held)
        case_attempts = CaseAttempts(
            lambda attempt: agents[attempt.agent](), tracing, turn_s, case_s, options.concurrency, simulator
        )
        with progress("running") as on_ended:
            is_whole = await case_attempts.run(
                attempts, lambda: on_ended(sum(attempt.has_ended for attempt in attempts), len(attempts))
            )
        if simulator is not None:
            _tell_conversations(simulator, attempts)
        arrivals = Arrivals(receiver, tracing, entries, attempts, wait_s)
        # Spans that came are graded even if the user interrupts the wait.
        is_whole &= await unless_interrupted(arrivals.wait())
        _write_spans(receiver, run, is_remote)
        return is_whole


def _set_endpoint(endpoint: str | None) -> None:
    """Set the variable for processors that the agents' modules make. ``None``: remove the variable."""
    os.environ.pop(_ENDPOINT, None)
    if endpoint is not None:
        os.environ[_ENDPOINT] = endpoint


async def _simulator(run: CaseRun, held: AsyncExitStack) -> Simulator | None:
    model, settings = run.options.simulate, run.simulation
    if model is None or settings is None:
        return None
    how = f"{model}, temperature {settings.judge.parameters['temperature']}, seed {run.options.seed}"
    return Simulator(await held.enter_async_context(judge_of(settings, os.environ)), model, how)


def _tell_conversations(simulator: Simulator, attempts: Sequence[Attempted]) -> None:
    ends: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.case.scenario and attempt.has_ended:
            ends["spoilt" if attempt.spoilt else attempt.how or "agent failed"] += 1
    counts = ", ".join(f"{how} {count}" for how, count in ends.most_common()) or "none"
    message(f"simulated user: {simulator.text()}; conversations: {counts}")


def _write_spans(receiver: SpanReceiver, run: CaseRun, is_remote: bool) -> None:
    owners = owners_of(receiver, run.attempts)
    kept, spoilt = {attempt.spoilt_id for attempt in run.attempts}, set[str]()
    for id_ in receiver.items():
        owner = owners.get(id_)
        if owner is None:
            if not is_remote:
                kept.add(id_)
        elif owner.spoilt:
            spoilt.add(id_)
        elif owner.has_ended:
            kept.add(id_)
    receiver.write(run.folder / "traces.pb", kept)
    if apart := spoilt - kept:
        receiver.write(run.folder / "simulator_failed.pb", apart)


def chosen(suite: Suite, options: CaseRunOptions) -> Suite:
    """Return the suite with the cases of ``only``.

    Raises ``UserError`` for a case without user messages, and for a pattern that matches no case.
    """
    wanted = _only([case.id for case in suite.cases], options)
    cases = tuple(case for case in suite.cases if case.id in wanted)
    for case in cases:
        if case.scenario:
            can_talk, cure = options.simulate is not None, "name a model for its user with --simulate"
        else:
            can_talk, cure = bool(messages_of(case)), "give it inputs.task, or give each interaction an input"
        if not can_talk:
            raise UserError(f"{' '.join(options.files)}: case {case.id} has no user messages: {cure}")
    return suite.model_copy(update={"cases": cases})


def _only(ids: Sequence[str], options: CaseRunOptions) -> Collection[str]:
    if options.only and options.baseline is not None:
        raise UserError("--baseline compares whole suites; omit --only")
    if options.only is None:
        return ids
    wanted: set[str] = set()
    for pattern in options.only:
        matching = [id_ for id_ in ids if fnmatchcase(id_, pattern)]
        if not matching:
            raise no_case("--only", pattern, " ".join(options.files), ids)
        wanted.update(matching)
    return wanted


def _agent(given: str | None, suite: Suite, case: Case) -> str:
    name = given or case.agent or next(iter(suite.agents), None)
    if name is None:
        raise UserError("no agent is named: use --agent, as in --agent app:answer, or write agents in the case file")
    return name

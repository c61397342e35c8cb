"""``pandaeval cases run``: the agent under test tries every case, and the spans that it leaves are graded."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.section import parse_duration
from pandaeval_collector.cli._hand import declared
from pandaeval_collector.cli._output import console, many, progress, safe
from pandaeval_collector.config import closest, secret
from pandaeval_collector.show.view.texts import dollars
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cli._ci import AnnotationTarget
from pandaeval_lab.cli._judges import judge_of, settings_of
from pandaeval_lab.cli._names import config_with_trials
from pandaeval_lab.cli.evaluate import EvaluateOptions, Evaluation, unreachable
from pandaeval_lab.passk.attempts import trials
from pandaeval_lab.replay.files import result_lines
from pandaeval_lab.running.agent import Agent, http_agent, is_address, python_agent
from pandaeval_lab.running.attempts import Attempted, Attempts, ScriptedUser, TimeLimits, User, messages_of
from pandaeval_lab.running.door import Door
from pandaeval_lab.running.simulated import SimulatedUser, Simulator
from pandaeval_lab.running.tracing import Tracing
from pandaeval_otel.processor.settings import enabled

_AGENT = (
    "The agent under test: module:function or ./file.py:function, called with (message, context), which returns a text "
    "or is a coroutine; an object or class with a method send; or an HTTP address, which gets one POST a turn."
)
_OUTPUT = "Folder for traces.pb, results.jsonl (a later --baseline), report.html and cases.xml (JUnit)."
_SIMULATE = (
    "The model that plays the user of cases with a scenario, as litellm spells it; reached, limited and tried again as "
    "the judge is (judge.*)."
)
_WAIT = "So long at most the last spans are waited for."
_FLUSH_S, _POLL_S = 30.0, 0.2
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class CaseRunOptions:
    """The options of the command."""

    suite: Annotated[Path, typer.Argument(help="Case file (YAML or JSON).")]
    agent: Annotated[str, typer.Option(help=_AGENT, metavar="AGENT")]
    agent_token_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Variable that holds the bearer token of an HTTP agent.")
    ] = None
    trials: Annotated[int, typer.Option(min=1, help="Attempts at each case.")] = 1
    simulate: Annotated[str | None, typer.Option(metavar="MODEL", help=_SIMULATE)] = None
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="With --simulate: that of its calls.")] = 0.7
    seed: Annotated[int, typer.Option(help="With --simulate: another number, other conversations.")] = 0
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Attempts at the same time.")] = 4
    turn_timeout: Annotated[str, typer.Option(metavar="TIME", help="What one turn of the agent may take.")] = "2m"
    case_timeout: Annotated[str, typer.Option(metavar="TIME", help="What a whole attempt may take.")] = "10m"
    wait: Annotated[str, typer.Option(metavar="TIME", help=_WAIT)] = "60s"
    only: Annotated[
        list[str] | None, typer.Option(metavar="CASE", help="Only this case; * stands for anything. Several times.")
    ] = None
    failed: Annotated[bool, typer.Option("--failed", help="Only the cases that failed in the last run.")] = False
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML).")] = None
    metrics: Annotated[str | None, typer.Option(help="Only these metrics, comma-separated, as for evaluate.")] = None
    model: Annotated[str | None, typer.Option(help="Judge with this model, as for evaluate.")] = None
    baseline: Annotated[
        Path | None,
        typer.Option(help="results.jsonl of an earlier run: leave with 1 when trials do worse than in it."),
    ] = None
    output: Annotated[Path, typer.Option(metavar="FOLDER", help=_OUTPUT)] = Path("pandaeval-run")
    annotations: Annotated[
        AnnotationTarget, typer.Option("--annotations", help="As for evaluate: for GitHub where it runs this.")
    ] = "auto"


@in_place_of("options", declared(CaseRunOptions), CaseRunOptions)
def run(options: CaseRunOptions) -> None:
    """Have the agent under test try every case, and grade the spans that it leaves.

    Each turn is a trace that names case, trial and session on its first span and as baggage. Spans arrive at a
    collector of this command: where the agent is an address, on the ports of server.grpc and server.http (4327, 4328).
    Ctrl-C grades what has ended. Leaves with 1 when a gate fails, as evaluate does, with 2 when nothing can be graded.
    """
    CaseRun(options).run()


class CaseRun:
    """One run of the command. The constructor checks all that can be checked before the agent is called: it raises
    ``UserError``."""

    def __init__(self, options: CaseRunOptions) -> None:
        self._options = options
        self._limits = TimeLimits(_seconds(options, "turn_timeout"), _seconds(options, "case_timeout"))
        self._wait_s = _seconds(options, "wait")
        self._config = config_with_trials(options.config)
        self._suite = self._chosen(read_suite(options.suite, self._config.metrics.modules))
        self._token = secret(options.agent_token_env, os.environ)
        if not enabled():
            raise UserError("OTEL_SDK_DISABLED or PANDAEVAL_ENABLED switches spans off, by which runs are graded")
        if is_address(options.agent) and (why := unreachable(options.agent)):
            raise UserError(f"--agent {options.agent} cannot be reached ({why}): start it first")
        try:
            options.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--output {options.output}: {error.strerror}; name a folder") from error
        self._traces = options.output / "traces.pb"
        graded = EvaluateOptions(
            [str(self._traces)],
            config=options.config,
            metrics=options.metrics,
            model=options.model,
            cases=options.suite,
            cases_report=options.output / "cases.xml",
            baseline=options.baseline,
            annotations=options.annotations,
        )
        self._evaluation = Evaluation(graded, self._suite, options.output)
        asked = {"temperature": options.temperature, "seed": options.seed}
        extra = {"judge.extra": {**self._config.judge.extra, **asked}}
        self._simulation = None if options.simulate is None else settings_of(options.config, options.simulate, extra)

    def run(self) -> None:
        """Runs it. Raises ``typer.Exit`` as ``Evaluation`` does, with 130 after Ctrl-C."""
        run_id = secrets.token_hex(4)
        attempts = [
            Attempted(case, str(trial), f"{case.id}/{trial}/{run_id}")
            for case in self._suite.cases
            for trial in range(1, max(self._options.trials, case.scenario.conversations if case.scenario else 1) + 1)
        ]
        is_whole = asyncio.run(self._run(attempts))
        ended = [attempt for attempt in attempts if attempt.has_ended]
        if not is_whole:
            typer.echo(f"notice: interrupted; {len(ended)} of {many(len(attempts), 'attempt')} had ended", err=True)
            if not ended:
                raise typer.Exit(_INTERRUPTED)
        if failed := [attempt for attempt in ended if attempt.error]:
            first = f"{failed[0].case.id}, trial {failed[0].trial}: {failed[0].error}"
            typer.echo(f"notice: the agent failed in {many(len(failed), 'attempt')}; {safe(first)}", err=True)
        if spoilt := [attempt for attempt in ended if attempt.spoilt]:
            first = f"{spoilt[0].case.id}, trial {spoilt[0].trial}: {spoilt[0].spoilt}"
            lead = f"notice: the simulated user spoilt {many(len(spoilt), 'attempt')} (spoilt.pb), which have no score"
            typer.echo(f"{lead}; {safe(first)}", err=True)
        try:
            self._evaluation.run()
        finally:
            if not is_whole:
                raise typer.Exit(_INTERRUPTED)

    async def _run(self, attempts: Sequence[Attempted]) -> bool:
        """Makes the attempts and writes their spans into the folder. Returns whether all were made."""
        options, remote = self._options, is_address(self._options.agent)
        async with AsyncExitStack() as held:
            door = await held.enter_async_context(Door(self._config if remote else None))
            if remote:
                agent: Agent = http_agent(options.agent, self._token, held)
            else:
                os.environ["PANDAEVAL_ENDPOINT"] = door.grpc  # for a processor that the agent's module makes
                agent = python_agent(options.agent)
            tracing = Tracing(door.grpc, here=not remote)
            simulator = None
            if self._simulation is not None and options.simulate is not None:
                how = f"{options.simulate}, temperature {options.temperature:g}, seed {options.seed}"
                caller = await held.enter_async_context(judge_of(self._simulation, os.environ))
                simulator = Simulator(caller, options.simulate, how)

            def user_of(attempt: Attempted) -> User:
                if simulator is not None and attempt.case.scenario is not None:
                    return SimulatedUser(simulator, attempt.case.scenario, int(attempt.trial))
                return ScriptedUser(messages_of(attempt.case))

            done = 0
            with progress(console(stderr=True), "running") as tell:

                def ended() -> None:
                    nonlocal done
                    done += 1
                    tell(done, len(attempts))

                tell(0, len(attempts))
                made = Attempts(agent, user_of, tracing, self._limits)
                is_whole = await made.run(attempts, options.concurrency, ended)
            if simulator is not None:
                cost = f", {dollars(simulator.cost_usd)}" if simulator.cost_usd else ""
                told = f"{simulator.how}: {many(simulator.calls, 'call')}, {simulator.tokens:,} tokens{cost}"
                typer.echo(f"simulated user: {told}", err=True)
            await asyncio.to_thread(tracing.flush, _FLUSH_S)
            await self._arrived(door, attempts, remote)
            spoilt = {id_ for attempt in attempts if attempt.spoilt for id_ in attempt.trace_ids}
            cut = {id_ for attempt in attempts if not attempt.has_ended for id_ in attempt.trace_ids}
            _write(self._traces, door.requests(cut | spoilt))
            if spoilt:
                _write(options.output / "spoilt.pb", door.requests((), spoilt))
            return is_whole

    async def _arrived(self, door: Door, attempts: Sequence[Attempted], remote: bool) -> None:
        """Waits until the traces are complete. Raises ``UserError`` where the agent left no spans at all."""
        good = [attempt for attempt in attempts if attempt.has_ended and not (attempt.error or attempt.spoilt)]
        ids = [id_ for attempt in good for id_ in attempt.trace_ids]
        deadline = time.monotonic() + self._wait_s
        # The first span of each is ours; an agent elsewhere sends its own when it likes.
        while not await door.is_complete(ids, 2 if remote else 1) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        items = door.items()
        silent = [each for each in good if all(items.get(id_, 0) < 2 for id_ in each.trace_ids)]
        if not silent or items.keys() - {id_ for each in attempts for id_ in each.trace_ids}:
            return
        cure = (
            "instrument it (docs/instrument.md), by the global TracerProvider, which its module sets when it is loaded"
        )
        if remote:
            doors = f"{door.grpc} (gRPC) or http://{door.http} (HTTP)"
            cure = f"have it send OTLP to {doors} and go on with the trace of the header traceparent"
        told = f"no spans of the agent came for {len(silent)} of {many(len(good), 'attempt')}: {cure}"
        if len(silent) == len(good):
            raise UserError(told)
        typer.echo(f"notice: {told}", err=True)

    def _chosen(self, suite: Suite) -> Suite:
        """Returns the cases that are asked for. Raises ``UserError`` for none, and for one that says nothing."""
        options, ids = self._options, {case.id for case in suite.cases}
        if (options.only or options.failed) and options.baseline is not None:
            raise UserError("--baseline compares whole suites: leave out --only and --failed")
        for name in options.only or ():
            if not any(fnmatchcase(id_, name) for id_ in ids):
                meant = closest(name, ids)
                cure = f"did you mean {meant}?" if meant else f"there are {', '.join(sorted(ids)[:10])}"
                raise UserError(f"--only {name}: {options.suite} has no such case; {cure}")
        if options.only:
            ids = {id_ for id_ in ids if any(fnmatchcase(id_, name) for name in options.only)}
        if options.failed:
            ids &= set(self._failed_last())
            if not ids:
                raise UserError(f"--failed: no case failed in the last run ({options.output}); leave it out")
        cases = tuple(case for case in suite.cases if case.id in ids)
        for case in cases:
            if case.scenario is not None and options.simulate is None:
                raise UserError(
                    f"{options.suite}: case {case.id} has a scenario: name who plays its user with --simulate"
                )
            if case.scenario is None and not messages_of(case):
                cure = "give it inputs.task, or an input to each of its interactions"
                raise UserError(f"{options.suite}: case {case.id} says nothing to an agent; {cure}")
        return suite.model_copy(update={"cases": cases})

    def _failed_last(self) -> Iterator[str]:
        results = self._options.output / "results.jsonl"
        if not results.is_file():
            raise UserError(f"--failed: there is no last run in {self._options.output}: leave it out, or name --output")
        return (each.id for each in trials(result_lines(results), per="case").cases if each.c < each.n or not each.n)


def _write(path: Path, requests: Iterable[bytes]) -> None:
    """Writes OTLP requests, each with its length in front."""
    with path.open("wb") as file:
        file.writelines(len(data).to_bytes(4, "big") + data for data in requests)


def _seconds(options: CaseRunOptions, name: str) -> float:
    text = getattr(options, name)
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UserError(f"--{name.replace('_', '-')} {text}: {error}") from None

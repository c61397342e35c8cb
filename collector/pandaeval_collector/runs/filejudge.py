"""The judge of a file run: what its traces, sessions and trials ask, and which failures have one cause.

One process asks the model for all of it, and starts at the first question.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts, FiledHere
from pandaeval_collector.jobs.checks import open_checks
from pandaeval_collector.jobs.grouping import RUBRIC, ErrorDeduplication, given, grouped, record
from pandaeval_collector.jobs.job_traces import hider
from pandaeval_collector.jobs.outcome import Patience, RecordBudgets
from pandaeval_collector.jobs.runner import SLOTS, Runner
from pandaeval_collector.jobs.setup import Desks, JudgeConfig, StoredMemory, open_caller
from pandaeval_collector.jobs.trial_questions import TrialJudge
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judge.client import WorkerProcess
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.known import MOST_RECORD, Price
from pandaeval_collector.judge.redact import redact
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.cases.trial import Trial
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.grading import TrialGrader, TrialVerdict
from pandaeval_collector.store import Store
from pandaeval_collector.store.failures import Failure, RootCause
from pandaeval_collector.store.failures.failure import by_code
from pandaeval_otel.model import Trigger

_COOLDOWN_S = 3.0
"""Somebody waits for a run: a provider that fails gets a shorter rest than in a collector."""
_PATIENCE = Patience(attempts=3, first=1.0, longest=5.0, interactive=True)

Settle = Callable[[Callable[[], Conclusion]], Awaitable[None]]
"""Commits what the line concludes."""


class FileJudge:
    """Owns one judge's process and an event loop for it. One thread without another loop; to be closed."""

    def __init__(
        self,
        store: Store,
        evaluator: Evaluator,
        config: JudgeConfig,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        on_judged: Callable[[int, int], None],
        instead: Caller | None = None,
    ) -> None:
        """``environ``: holds the judge's secrets. ``on_judged`` is told how many of how many judgements are done.
        ``instead`` is asked in the judge's place."""
        self._store, self._evaluator, self._config = store, evaluator, config
        self._environ, self._telemetry, self._on_judged = environ, telemetry, on_judged
        self._instead = instead
        self._loop = asyncio.Runner()
        self._asked = 0

    @cached_property
    def _open(self) -> tuple[WorkerProcess, Caller]:
        hasty = replace(self._config, setup=replace(self._config.setup, cooldown=_COOLDOWN_S))
        process, caller = open_caller(self._store, hasty, self._environ)
        return process, self._instead or caller

    @cached_property
    def _desks(self) -> Desks:
        return Desks(self._open[1], self._evaluator.settings.judge)

    def prices(self) -> Mapping[str, Price]:
        """Returns the price of each model whose price is known. Raises
        :class:`pandaeval_collector.judge.call.CallFailedError` where the process does not start."""
        self._loop.run(self._open[0].start())
        return self._open[0].prices

    def close(self) -> None:
        """Ends the process, if one was started."""
        with self._loop:
            if "_open" in self.__dict__:
                self._loop.run(self._open[0].close())

    def results(self, line: Line, closing: Sequence[Sequence[str]]) -> list[Result]:
        """Runs the stored jobs, closes the sessions of each batch in ``closing``, runs the jobs of these sessions;
        returns the results of all three."""
        return self._loop.run(self._results(line, closing))

    def trials(
        self, grader: TrialGrader, batches: Iterable[Sequence[Trial]], total: int
    ) -> Iterator[tuple[Trial, Mapping[str, TrialVerdict]]]:
        """Yields each trial of ``batches`` with the verdicts of the judged graders, by name; asks about the trials of a
        batch at the same time. ``total``: how many trials there are."""
        settings = self._evaluator.settings.judge
        hide = redact if settings is None else hider(settings)
        asked = TrialJudge(grader, self._desk(), hide, secrets_out=self._desks.secrets)
        numbers = itertools.count(1)
        for trials in batches:
            verdicts = self._loop.run(asked.verdicts(trials, lambda: self._on_judged(next(numbers), total)))
            yield from zip(trials, verdicts, strict=True)

    def grouped(self, failures: Sequence[Failure]) -> tuple[RootCause, ...]:
        """Groups failures by root cause, gravest first: as the judge says in one call, else by label."""
        settings = self._evaluator.settings.judge
        if settings is None:
            return by_code(failures)
        desk, model = self._desk(), settings.model

        async def ask(shown: Sequence[Failure]) -> ErrorDeduplication:
            return await Judge(desk, record(shown), model, self._desks.secrets).ask(RUBRIC, given(shown))

        return self._loop.run(grouped(failures, ask))

    def _desk(self) -> Desk:
        return self._desks.desk(StoredMemory(self._store, self._telemetry))

    async def _results(self, line: Line, closing: Sequence[Sequence[str]]) -> list[Result]:
        """Runs all jobs, commits one decision at a time, then closes the sessions and runs the jobs that they add."""
        results: list[Result] = []
        turn = asyncio.Lock()

        async def settle(decide: Callable[[], Conclusion]) -> None:
            async with turn:
                decision = decide()
                await asyncio.wrap_future(self._store.commit(decision.changes))
                results.extend(decision.results)

        await self._drain(line, settle)
        for session_ids in closing:
            await settle(partial(line.close_sessions, dict.fromkeys(session_ids, Trigger.FILE)))
        await self._drain(line, settle)
        return results

    async def _drain(self, line: Line, settle: Settle) -> None:
        """Runs the jobs that are waiting now."""
        jobs = self._store.jobs
        if not (waiting := jobs.waiting()):
            return
        self._asked += waiting
        process, caller = self._open
        attempts = Attempts(
            self._store,
            line.scores,
            self._evaluator,
            caller,
            FiledHere(line, settle),
            self._telemetry,
            _PATIENCE,
            checks=open_checks(self._config, self._store, self._desks, self._telemetry),
            budgets=RecordBudgets(process.record_budget if self._instead is None else _most_record),
        )
        runner = Runner(self._store, attempts, SLOTS * self._config.limits.concurrency)
        await runner.drain(lambda: self._on_judged(self._asked - jobs.waiting(), self._asked))


async def _most_record(model: str) -> int:
    return MOST_RECORD

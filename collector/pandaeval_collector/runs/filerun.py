"""Scores files with the collector's own line, on a temporary store: the results and ids are those that a running
collector would give.

All traces close at the end of the input and are scored in order of their start, so the order in the files does not
matter. Memory does not grow with the input: spans wait on disk.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import DecodeError

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judge.known import Price
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.implied_sessions import Forward, Link
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.stored_traces import Part, closing_of, rebuilt, stored
from pandaeval_collector.pipeline.line.understanding import Understood, unasked, with_session
from pandaeval_collector.receivers.files import BadLine, Request
from pandaeval_collector.runs.fileworkers import FileWorkers
from pandaeval_collector.scoring.cases.graders import CORRECT
from pandaeval_collector.scoring.cases.matching import Attempt, TrialMatcher, TrialTrace
from pandaeval_collector.scoring.cases.trial import Trial
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.grading import TrialGrader, TrialVerdict
from pandaeval_collector.store import Chunk, SessionTraceRow, Store
from pandaeval_collector.store.failures import Failure, RootCause
from pandaeval_collector.store.failures.failure import by_code
from pandaeval_collector.trials.passk.attempts import slim
from pandaeval_collector.trials.passk.figures import repeated
from pandaeval_otel.assembly import CloseRules, DueTrace
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.session import may_be_linked
from pandaeval_otel.normal.trace import Closing
from pandaeval_otel.wire.fragments import MalformedOtlpError
from pandaeval_otel.wire.splitting import read_chunk, split_logs, split_traces

if TYPE_CHECKING:
    from pandaeval_collector.jobs.setup import JudgeConfig
    from pandaeval_collector.runs.filejudge import FileJudge

_BATCH = 128
_FEW = 10_000
"""Fewer spans are scored here in less time than other processes take to start."""
_TRIALS = 64
"""Trials that a judge is asked about at the same time, as far as its limits allow."""
T = TypeVar("T")


@dataclass(slots=True)
class Read:
    """Counts what was read of the input, and keeps the first ten problems with their places."""

    requests: int = 0
    items: int = 0
    stored_bytes: int = 0
    bad: int = 0
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        self.bad += 1
        if len(self.problems) < 10:
            self.problems.append(text)


class FileRun:
    """Scores any number of inputs: :meth:`add` each request, then read :meth:`results`, or :meth:`traces` without an
    evaluator. A context manager."""

    def __init__(
        self,
        evaluator: Evaluator | None,
        rules: CloseRules | None = None,
        judge: JudgeConfig | None = None,
        environ: Mapping[str, str] | None = None,
        on_judged: Callable[[int, int], None] | None = None,
        where: Callable[[Trace], bool] | None = None,
        grader: TrialGrader | None = None,
        ks: Sequence[int] = (),
        store: Store | None = None,
        wants: Callable[[bytes], bool] | None = None,
        instead: Caller | None = None,
        workers: Callable[[Path], FileWorkers] | None = None,
    ) -> None:
        """``judge`` is asked after everything else is scored, with secrets from ``environ``; ``on_judged`` is told how
        many of how many judgements are done. ``where`` says whether an agent's trace is scored at all; answers are
        still compared with those of all earlier traces, and sessions are scored by the traces that are. ``grader``
        grades the trials of its cases; ``ks``: for which k cases with as many trials get pass@k and pass^k. ``store``
        is used in place of a temporary one and stays open; undecided traces in it are scored too. ``wants`` says by a
        trace's id whether it is read. ``instead`` is asked in the judge's place. ``workers`` makes processes that read
        the traces of a store, used for many traces where nothing here needs their spans."""
        self.read = Read()
        self.telemetry = Telemetry()
        self.cost_usd = 0.0
        """What the judge did cost, where a limit is set; known at the end."""
        self._rules = rules or CloseRules()
        self._own = contextlib.ExitStack()
        self._store = store or self._temporary()
        self._evaluator = evaluator
        on_judged = on_judged or (lambda done, total: None)
        self._judge: FileJudge | None = None
        if judge is not None and evaluator is not None:
            from pandaeval_collector.runs.filejudge import FileJudge  # what asks models is a third of all modules

            self._judge = FileJudge(self._store, evaluator, judge, environ or {}, self.telemetry, on_judged, instead)
        self._where, self._wants = where, wants
        self._grader, self._ks = grader, ks
        self.trials = None if grader is None else TrialMatcher(grader.suite)
        """Which traces are trials of which cases, once :meth:`results` has come to them."""
        self.left_out: set[str] = set()
        """Ids of the traces that ``where`` did not want, once :meth:`results` has come to them."""
        self._workers = None if workers is None or where is not None or grader is not None else workers
        self._waiting: list[Chunk] = []
        self._linked: set[bytes] = set()
        """Ids of traces that may continue others."""

    def __enter__(self) -> FileRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._judge is not None:
            self._judge.close()
            self.cost_usd = self._store.spending.spent(self._store.spending.today(time.time()))
        self._own.close()

    def _temporary(self) -> Store:
        folder = self._own.enter_context(tempfile.TemporaryDirectory(prefix="pandaeval-"))
        store = Store(Path(folder), durability="off", max_bytes=1 << 40)
        self._own.callback(store.close)
        return store

    def prices(self) -> Mapping[str, Price]:
        """Returns the price of each model whose price is known; nothing without a judge."""
        return {} if self._judge is None else self._judge.prices()

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the user's own metrics come from."""
        return () if self._evaluator is None else self._evaluator.settings.modules

    def add(self, request: Request | BadLine) -> None:
        """Takes in one request. Counts a bad one and notes its problem; the others are not affected."""
        if isinstance(request, BadLine):
            self.read.problem(f"{request.place}: {request.reason}")
            return
        try:
            split = split_logs(request.data) if request.logs else split_traces(request.data)
        except MalformedOtlpError as error:
            self.read.problem(str(error))
            return
        if split.rejected:
            self.read.problem(split.message)
        self.read.requests += 1
        self.read.items += split.decoded
        for fragment in split.fragments:
            if self._wants is not None and not self._wants(fragment.trace_id):
                continue
            chunk = Chunk(
                self._store.next_chunk_id(),
                fragment.trace_id,
                fragment.logs,
                len(fragment.items),
                fragment.start_ns,
                fragment.chunk,
            )
            self._waiting.append(chunk)
            self.read.stored_bytes += len(fragment.chunk)
            if may_be_linked(fragment.chunk):
                self._linked.add(fragment.trace_id)
        if len(self._waiting) >= _BATCH:
            self._flush()

    def waiting(self) -> int:
        """Returns how many traces were read, those without agents included."""
        self._flush()
        return sum(1 for _ in self._store.reads.traces_by_start())

    def results(self, on_decided: Callable[[Conclusion], None] | None = None) -> Iterator[Result]:
        """Yields every result: those of traces by start time, the judge's as they come, those of trials and of
        sessions, and the judge's of sessions. ``on_decided`` gets each batch of traces before its results. Not to be
        called on an event loop when there is a judge."""
        if self._evaluator is None:
            raise ValueError("results need an evaluator")
        self._flush()
        line = Line(self._store.reads, self._evaluator, chains=self._chains(), left_out=self.left_out)
        touched: set[str] = set()
        yield from self._scored(line, touched, on_decided)
        closing = [*_batches(iter(sorted(touched)), _BATCH)]
        if self._judge is not None:
            yield from self._judge.results(line, closing)
            yield from self._graded()
            return
        yield from self._graded()
        for session_ids in closing:
            decision = line.close_sessions(dict.fromkeys(session_ids, Trigger.FILE))
            self._store.commit(decision.changes).result()
            yield from decision.results

    def _scored(
        self, line: Line, touched: set[str], on_decided: Callable[[Conclusion], None] | None
    ) -> Iterator[Result]:
        """Yields the results of the traces, and adds their sessions to ``touched``."""
        for batch, understood in self._understood(line):
            decision = self._decided(line, batch, understood)
            decision.changes.jobs = [replace(job, delay=0.0) for job in decision.changes.jobs]  # nothing comes late
            self._store.commit(decision.changes).result()
            touched |= decision.changes.touched
            if on_decided is not None:
                on_decided(decision)
            if self.trials is not None:
                self.trials.add(decision.traces)
            yield from decision.results

    def _graded(self) -> Iterator[Result]:
        """Yields the results of all trials. Runs last, as a trial may get another trace up to the end of the input;
        reads the traces of a trial, or of a few, again."""
        if self._grader is None or self.trials is None:
            return
        told: list[Mapping[str, Any]] = []
        for trial, found in self._judged(self._grader, self.trials.attempts()):
            for result in self._grader.results(trial, found):
                if result.metric == CORRECT:
                    told.append(slim(result.to_dict()))
                yield result
        yield from repeated(told, self._ks)

    def _judged(
        self, grader: TrialGrader, attempts: Sequence[Attempt]
    ) -> Iterator[tuple[Trial, Mapping[str, TrialVerdict]]]:
        """Pairs each trial with the verdicts of the judged graders, or with none where there is no judge."""
        read = (Trial(each.case, each.name, tuple(map(self._read_again, each.traces))) for each in attempts)
        if self._judge is not None and attempts:
            return self._judge.trials(grader, _batches(read, _TRIALS), len(attempts))
        return ((trial, {}) for trial in read)

    def _read_again(self, kept: TrialTrace) -> Trace:
        """Reads a trace as it was when it was scored, in the session that it was placed in."""
        trace = rebuilt(self.contents(kept.trace_id), Closing(kept.trigger)).trace
        assert trace is not None
        return trace if kept.session_id in (None, trace.session_id) else with_session(trace, kept.session_id)

    def left_behind(self, session_id: str) -> list[SessionTraceRow]:
        """Returns the stored facts of a session's traces, in session order; complete once :meth:`results` has ended."""
        return self._store.reads.session_traces(session_id)

    def contents(self, trace_id: str) -> Sequence[Part]:
        """Returns the stored spans and logs of a trace. Raises ``ValueError`` for an id that is not hex."""
        return self._store.reads.contents(bytes.fromhex(trace_id))

    def grouped(self, failures: Sequence[Failure]) -> tuple[RootCause, ...]:
        """Groups failures by root cause, gravest first: as the judge says in one call, else by label. Not to be called
        on an event loop when there is a judge."""
        return by_code(failures) if self._judge is None or not failures else self._judge.grouped(failures)

    def _understood(self, line: Line) -> Iterator[tuple[Sequence[DueTrace], Sequence[Understood]]]:
        """Yields batches of traces and what was understood of each: here where there are few."""
        batches = _batches(self._due(), _BATCH)
        if self._workers is None or self.read.items < _FEW:
            return ((batch, line.understanding.of(batch)) for batch in batches)
        pool = self._workers(self._store.path)
        self._own.callback(pool.close)
        return pool.understood(batches)

    def _decided(self, line: Line, batch: Sequence[DueTrace], understood: Sequence[Understood]) -> Conclusion:
        """Files a batch of traces. Traces that ``where`` does not want are filed without results or jobs."""
        where = self._where
        if where is None:
            return line.file(batch, understood)
        others = {one.run.unit.trace_id for one in understood if one.run and one.run.trace and not where(one.run.trace)}
        self.left_out |= others
        decision = line.file(batch, [unasked(one) if _is_of(one, others) else one for one in understood])
        decision.runs = [run for run in decision.runs if run.unit.trace_id not in others]
        decision.results = [result for result in decision.results if result.unit.trace_id not in self.left_out]
        decision.left_out = len(others)
        return decision

    def traces(self) -> Iterator[Trace]:
        """Yields every trace in normal form by start time, unscored, those without agents included."""
        self._flush()
        chains = self._chains()
        for trace in self._built(self._due(), self.read.problem):
            session = chains.session(trace.session_id, Link.of(trace))
            yield trace if session is None or session == trace.session_id else with_session(trace, session)

    def _chains(self) -> Forward:
        """Reads ahead to find which trace continues which: the first trace of a chain does not tell."""
        some = (each for each in self._due() if each.trace_id in self._linked)
        return Forward(Link.of(trace) for trace in self._built(some, lambda _: None)) if self._linked else Forward(())

    def _built(self, due: Iterable[DueTrace], on_problem: Callable[[str], None]) -> Iterator[Trace]:
        """Yields traces in normal form; calls ``on_problem`` for each trace that cannot be read."""
        for each in due:
            try:
                trace = stored(self._store.reads, each.chunks, closing_of(each)).trace
            except (ValueError, DecodeError) as error:
                on_problem(f"trace {each.trace_id.hex()}: {error}")
                continue
            if trace is not None:
                yield trace

    def _flush(self) -> None:
        if self._waiting:
            self._store.append(self._waiting).result()
            self._waiting = []

    def _due(self) -> Iterator[DueTrace]:
        for trace_id, chunks, size, items in self._store.reads.traces_by_start():
            kept, trigger = self._capped(chunks, size, items)
            yield DueTrace(trace_id, trigger, True, False, tuple(kept), frozenset(), 0, 0, size, 1)

    def _capped(self, chunks: list[int], size: int, items: int) -> tuple[list[int], Trigger]:
        """Returns the chunks up to the size limits of a running collector, so that both score the same."""
        if size < self._rules.max_bytes and items < self._rules.max_spans:
            return chunks, Trigger.FILE
        known: set[bytes] = set()
        total = 0
        for index, chunk in enumerate(chunks):
            logs, data = self._store.reads.chunks([chunk])[chunk]
            total += len(data)
            try:
                known.update(item.id for item in read_chunk(data, logs) if not item.is_log)
            except MalformedOtlpError:  # there is no end to what it holds: whoever decodes it will say so
                return chunks[: index + 1], Trigger.MEMORY
            if len(known) >= self._rules.max_spans:
                return chunks[: index + 1], Trigger.SPAN_LIMIT
            if total >= self._rules.max_bytes:
                return chunks[: index + 1], Trigger.MEMORY
        return chunks, Trigger.FILE


def _is_of(understood: Understood, trace_ids: Collection[str]) -> bool:
    return understood.run is not None and understood.run.unit.trace_id in trace_ids


def _batches(items: Iterator[T], size: int) -> Iterator[Sequence[T]]:
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch

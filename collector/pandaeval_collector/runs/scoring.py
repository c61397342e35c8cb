"""Scores a batch of a run with the collector's own line and judge, on a temporary store: what comes out is what the
traces would get if they came now."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts, FiledHere
from pandaeval_collector.jobs.outcome import Patience
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.implied_sessions import Places
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import Run, Understood, unasked
from pandaeval_collector.runs.run_traces import LiveTraces, Placed
from pandaeval_collector.runs.wire import RunSetup, Scored, TracesToScore
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.store import Chunk, Store
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.judging import Verdicts
from pandaeval_collector.store.run_rows import RunResult
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger

_AT_ONCE = 128
_PATIENCE = Patience(attempts=3, first=1.0, longest=5.0, interactive=True)
_FAILED = frozenset(why.value for why in PASSING)
_SECRET = "judge.secret"  # noqa: S105 - the name of a fact
_NO_ANSWER = "SELECT trace_id, why FROM jobs WHERE state = 'dead' OR why IN ('gone', 'unreadable', 'unfinished')"


class SharedVerdicts(Verdicts):
    """Reads verdicts from the collector's store, and writes new ones by ``write``."""

    def __init__(self, live: LiveTraces, write: Callable[[str, bytes], Future[None]]) -> None:
        self._live, self._write = live, write
        self.remembered = 0

    def recall(self, key: str) -> bytes | None:
        found = self._live.verdict(key)
        self.remembered += found is not None
        return found

    def keep(self, key: str, body: bytes) -> Future[None]:
        return self._write(key, body)


class _Known:
    """Implements :class:`pandaeval_collector.pipeline.line.implied_sessions.Chains` with the sessions that the
    collector found."""

    def __init__(self, sessions: Mapping[str, str]) -> None:
        self._sessions = sessions

    def place(self, runs: Sequence[Run]) -> Places:
        unnamed = (run.unit.trace_id for run in runs if run.unit.session_id is None)
        return Places(sessions={id_: self._sessions[id_] for id_ in unnamed if id_ in self._sessions})


class Scoring:
    """Scores batches of a run, one after the other. On one event loop, which it blocks while no judge is asked."""

    def __init__(
        self, setup: RunSetup, evaluator: Evaluator, live: LiveTraces, caller: Caller, verdicts: Verdicts
    ) -> None:
        self._setup, self._evaluator, self._live = setup, evaluator, live
        self._caller, self._verdicts = caller, verdicts
        self._numbers = itertools.count()
        self._empty = setup.folder / "empty"
        shutil.rmtree(setup.folder, ignore_errors=True)  # of a process that was killed
        Store(self._empty, durability="off").close()

    async def of(self, batch: TracesToScore) -> Scored:
        """Scores a batch; returns whether each item failed, and the results."""
        folder = self._setup.folder / f"{next(self._numbers)}"
        shutil.copytree(self._empty, folder)  # a tenth of the time that its tables take
        store = Store(folder, durability="off", max_bytes=1 << 40)
        try:
            store.verdicts = self._verdicts
            secret = self._live.get(_SECRET)
            if secret is not None:
                store.put(_SECRET, secret).result()
            return await _OneBatch(self._setup, self._evaluator, self._live, self._caller, store).of(batch)
        finally:
            store.close()
            shutil.rmtree(folder, ignore_errors=True)


class _OneBatch:
    def __init__(self, setup: RunSetup, evaluator: Evaluator, live: LiveTraces, caller: Caller, store: Store) -> None:
        self._setup, self._evaluator, self._live, self._caller, self._store = setup, evaluator, live, caller, store
        self._failed: dict[str, str] = {}
        """Why each trace failed, by its id."""
        self._results: dict[tuple[str, str], Result] = {}

    async def of(self, batch: TracesToScore) -> Scored:
        placed = self._live.placed(batch.items, self._setup.sessions)
        line = Line(self._store.reads, self._evaluator, chains=_Known(_sessions(placed)))
        gone = {each.no for each in placed} - {each.no for each in self._decide(line, placed)}
        gone |= {no for no, _ in batch.items} - {each.no for each in placed}
        if self._setup.judge is not None:
            await self._judge(line, self._setup.judge.limits.concurrency)
        if self._setup.sessions:
            short = {each.session for each in placed if each.no in gone}
            self._close(line, sorted({each.session for each in placed if each.session} - short))
            if self._setup.judge is not None and self._store.jobs.waiting():
                await self._judge(line, self._setup.judge.limits.concurrency)
        return self._scored(batch, placed, gone)

    def _decide(self, line: Line, placed: Sequence[Placed]) -> Iterator[Placed]:
        """Files the traces in order of start; yields those that could be read."""
        for start in range(0, len(placed), _AT_ONCE):
            chunks: list[Chunk] = []
            among = placed[start : start + _AT_ONCE]
            some = [(each, due) for each in among if (due := self._due(each, chunks)) is not None]
            self._store.append(chunks).result()
            dues, others = [due for _, due in some], {each.trace_id.hex() for each, _ in some if not each.wanted}
            understood = line.understanding.of(dues)
            decision = line.file(dues, [unasked(one) if _is_of(one, others) else one for one in understood])
            decision.changes.jobs = [replace(job, delay=0.0) for job in decision.changes.jobs]
            self._take(decision)
            yield from (each for each, _ in some)

    def _due(self, each: Placed, chunks: list[Chunk]) -> DueTrace | None:
        """Adds the stored spans and logs of a trace to ``chunks``; returns ``None`` where nothing is stored."""
        parts = self._live.parts(each.no)
        if not parts:
            return None
        new = [Chunk(self._store.next_chunk_id(), each.trace_id, logs, 1, 0, data) for logs, data in parts]
        chunks += new
        ids, size = tuple(chunk.id for chunk in new), sum(len(data) for _, data in parts)
        return DueTrace(each.trace_id, Trigger.FILE, True, False, ids, frozenset(), 0, 0, size, each.revision)

    async def _judge(self, line: Line, concurrency: int) -> None:
        async def settle(decide: Callable[[], Conclusion]) -> None:
            self._take(decide())

        attempts = Attempts(
            self._store,
            line.scores,
            self._evaluator,
            self._caller,
            FiledHere(line, settle),
            Telemetry(),
            _PATIENCE,
        )
        await Runner(self._store, attempts, 2 * concurrency).drain()

    def _close(self, line: Line, session_ids: Sequence[str]) -> None:
        for start in range(0, len(session_ids), _AT_ONCE):
            self._take(line.close_sessions(dict.fromkeys(session_ids[start : start + _AT_ONCE], Trigger.FILE)))

    def _take(self, decision: Conclusion) -> None:
        self._store.commit(decision.changes).result()
        self._failed |= {trace_id.hex(): kind for trace_id, kind in decision.failed.items()}
        for result in decision.results:
            self._results[result.unit.id, f"{result.unit.level}.{result.metric}"] = result

    def _scored(self, batch: TracesToScore, placed: Sequence[Placed], gone: Collection[int]) -> Scored:
        about = {each.trace_id.hex(): each.no for each in placed if each.wanted}
        names = self._live.session_names({group for _, group in batch.items if group})
        about_session = {name: -group for group, name in names.items()}
        for trace_id, why in self._unanswered():
            self._failed.setdefault(trace_id, why)
        rows: dict[tuple[int, str], RunResult] = {}
        sent = []
        for (unit, key), result in self._results.items():
            of_session = result.unit.level == "session"
            no = about_session.get(unit) if of_session else about.get(result.unit.trace_id)
            if no is None:
                continue
            result.run_id = self._setup.run_id
            if result.why in _FAILED:
                self._failed.setdefault(unit if of_session else result.unit.trace_id, str(result.why))
            rows[no, key] = _worse(rows.get((no, key)), _row(no, key, result))
            sent.append(result)
        failed = {about[id_]: why for id_, why in self._failed.items() if id_ in about} | dict.fromkeys(gone, "gone")
        items = [(no, failed.get(no, "")) for no, _ in batch.items]
        return Scored(items, [*rows.values()], pickle.dumps(sent) if self._setup.emit and sent else b"")

    def _unanswered(self) -> list[tuple[str, str]]:
        """Returns the trace id and reason of each question that got no answer."""
        with contextlib.closing(connect(self._store.path / FILE_NAME, "off", read_only=True)) as reader:
            return [(trace_id.hex(), why or "judge_failed") for trace_id, why in reader.execute(_NO_ANSWER)]


def _row(about: int, key: str, result: Result) -> RunResult:
    by = f"{result.evaluator.version} {result.evaluator.model or ''}"
    return RunResult(about, key, result.outcome, result.score, result.success, result.cost_usd, by, result.to_json())


def _worse(one: RunResult | None, other: RunResult) -> RunResult:
    """Returns the worse of two results of a trace's turns. Any score is preferred to none."""
    if one is None:
        return other
    first, second = (2.0 if each.score is None else each.score for each in (one, other))
    return one if first <= second else other


def _sessions(placed: Sequence[Placed]) -> dict[str, str]:
    return {each.trace_id.hex(): each.session for each in placed if each.session is not None}


def _is_of(understood: Understood, trace_ids: Collection[str]) -> bool:
    return understood.run is not None and understood.run.unit.trace_id in trace_ids

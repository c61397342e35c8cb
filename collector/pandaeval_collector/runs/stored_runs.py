"""Scores a batch of a run: what comes out is what the traces would get if they came now."""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, nullcontext
from dataclasses import replace

from pandaeval_collector.base.result import Result
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.implied_sessions import Places
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_collector.runs.replay import batches, replay
from pandaeval_collector.runs.replay_judge import ReplayJudge
from pandaeval_collector.runs.run_traces import LiveTraces, Placed
from pandaeval_collector.runs.wire import RunSetup, Scored
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.store import Chunk, Store
from pandaeval_collector.store.judging import Verdicts
from pandaeval_collector.store.run_rows import RunResult
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trace, Trigger

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


class StoredTraces:
    """Copies the traces of a batch into ``store``: a :class:`pandaeval_collector.runs.replay.Source`. ``gone``: the
    numbers of those that are not kept any more, once all are read."""

    def __init__(self, store: Store, live: LiveTraces, items: Sequence[tuple[int, int]], of_sessions: bool) -> None:
        self.store, self._live, self._of_sessions = store, live, of_sessions
        self._placed = live.placed(items, of_sessions)
        self.about = {each.trace_id.hex(): each.no for each in self._placed if each.wanted}
        """The numbers of the traces whose results are kept, by their ids."""
        self.gone = {no for no, _ in items} - {each.no for each in self._placed}

    def chains(self) -> StoredTraces:
        return self

    def place(self, runs: Sequence[Run]) -> Places:
        """Returns the sessions that the collector found for traces which name none."""
        found = {each.trace_id.hex(): each.session for each in self._placed if each.session is not None}
        unnamed = (run.unit.trace_id for run in runs if run.unit.session_id is None)
        return Places(sessions={id_: found[id_] for id_ in unnamed if id_ in found})

    def due(self) -> Iterator[Sequence[DueTrace]]:
        for some in batches(self._placed):
            chunks: list[Chunk] = []
            due = [each for placed in some if (each := self._due(placed, chunks)) is not None]
            self.store.append(chunks).result()
            yield due

    def closing(self, touched: Collection[str]) -> Collection[str]:
        """Returns the sessions all of whose traces are kept; none where sessions are not scored."""
        if not self._of_sessions:
            return ()
        short = {each.session for each in self._placed if each.no in self.gone}
        return {each.session for each in self._placed if each.session} - short

    def is_wanted(self, trace: Trace) -> bool:
        """Returns whether the results of a trace are kept: others only give context."""
        return trace.trace_id in self.about

    def _due(self, placed: Placed, chunks: list[Chunk]) -> DueTrace | None:
        """Adds the stored spans and logs of a trace to ``chunks``; returns ``None`` where nothing is stored."""
        parts = self._live.parts(placed.no)
        if not parts:
            self.gone.add(placed.no)
            return None
        new = [Chunk(self.store.next_chunk_id(), placed.trace_id, logs, 1, 0, data) for logs, data in parts]
        chunks += new
        ids, size = tuple(chunk.id for chunk in new), sum(len(data) for _, data in parts)
        return DueTrace(placed.trace_id, Trigger.FILE, True, False, ids, frozenset(), 0, 0, size, placed.revision)


class Scoring:
    """Scores batches of a run, one after the other. On one thread without an event loop."""

    def __init__(
        self, setup: RunSetup, evaluator: Evaluator, live: LiveTraces, caller: Caller, verdicts: Verdicts
    ) -> None:
        self._setup, self._evaluator, self._live = setup, evaluator, live
        self._caller, self._verdicts = caller, verdicts
        self._numbers = itertools.count()
        self._empty = setup.folder / "empty"
        shutil.rmtree(setup.folder, ignore_errors=True)  # of a process that was killed
        Store(self._empty, durability="off").close()

    def of(self, items: Sequence[tuple[int, int]]) -> Scored:
        """Scores traces by number, each with the number of its session (0: none); returns whether each failed, and the
        results. All traces of a session come together."""
        folder = self._setup.folder / f"{next(self._numbers)}"
        shutil.copytree(self._empty, folder)  # a tenth of the time that its tables take
        try:
            with closing(Store(folder, durability="off", max_bytes=1 << 40)) as store:
                store.verdicts = self._verdicts
                if (secret := self._live.get(_SECRET)) is not None:
                    store.put(_SECRET, secret).result()
                return self._of(StoredTraces(store, self._live, items, self._setup.sessions), items)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _of(self, source: StoredTraces, items: Sequence[tuple[int, int]]) -> Scored:
        failed: dict[str, str] = {}
        """Why each trace failed, by its id."""
        results: dict[tuple[str, str], Result] = {}

        def decided(decision: Conclusion) -> None:
            failed.update((trace_id.hex(), kind) for trace_id, kind in decision.failed.items())

        with self._judge(source.store) as judge:
            where = None if self._setup.sessions else source.is_wanted
            for result in replay(source, self._evaluator, judge, where=where, on_decided=decided):
                results[result.unit.id, f"{result.unit.level}.{result.metric}"] = result
        for trace_id, why in source.store.reads.connection().execute(_NO_ANSWER):
            failed.setdefault(trace_id.hex(), why or "judge_failed")
        return self._scored(source, items, results, failed)

    def _judge(self, store: Store) -> ReplayJudge | nullcontext[None]:
        judge = self._setup.judge
        if judge is None:
            return nullcontext()
        return ReplayJudge(
            store, self._evaluator, replace(judge, votes=1, retest=0.0, second=None), caller=self._caller
        )

    def _scored(
        self,
        source: StoredTraces,
        items: Sequence[tuple[int, int]],
        results: Mapping[tuple[str, str], Result],
        failed: dict[str, str],
    ) -> Scored:
        about = source.about
        names = self._live.session_names({group for _, group in items if group})
        about_session = {name: -group for group, name in names.items()}
        rows: dict[tuple[int, str], RunResult] = {}
        sent = []
        for (unit, key), result in results.items():
            of_session = result.unit.level == "session"
            no = about_session.get(unit) if of_session else about.get(result.unit.trace_id)
            if no is None:
                continue
            result.run_id = self._setup.run_id
            if result.why in _FAILED:
                failed.setdefault(unit if of_session else result.unit.trace_id, str(result.why))
            rows[no, key] = _worse(rows.get((no, key)), _row(no, key, result))
            sent.append(result)
        whys = {about[id_]: why for id_, why in failed.items() if id_ in about} | dict.fromkeys(source.gone, "gone")
        return Scored(
            [(no, whys.get(no, "")) for no, _ in items],
            [*rows.values()],
            pickle.dumps(sent) if self._setup.emit and sent else b"",
        )


def _row(about: int, key: str, result: Result) -> RunResult:
    by = f"{result.evaluator.version} {result.evaluator.model or ''}"
    return RunResult(about, key, result.outcome, result.score, result.success, result.cost_usd, by, result.to_json())


def _worse(one: RunResult | None, other: RunResult) -> RunResult:
    """Returns the worse of two results of a trace's turns. Any score is preferred to none."""
    if one is None:
        return other
    first, second = (2.0 if each.score is None else each.score for each in (one, other))
    return one if first <= second else other

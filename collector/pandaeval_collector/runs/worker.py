"""The process of a run: ``python -m pandaeval_collector.runs.worker``.

It scores what the traces of a batch would get if they came now. It reads the collector's store and writes nothing
there, so it may be killed at any time; whom it asks and what it remembers goes through the collector. The traces of a
run are copied from that store, which a collector has open for writing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import pickle
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any

import zstandard

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.runtime.calls import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.implied_sessions import Places
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_collector.runs.counting import CountingCaller, usual_answers
from pandaeval_collector.runs.process import RunSetup, Scored
from pandaeval_collector.runs.replay import batches, replay
from pandaeval_collector.runs.replay_judge import ReplayJudge, capped
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.store import Chunk, Store, StoreReader, numbers
from pandaeval_collector.store.jobs import Verdicts
from pandaeval_collector.store.runs import RunResult
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)

_BEFORE = 32
"""So many traces of a session before a wanted one are read along: what its answer is compared with, and what a judge is
told of the conversation."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A trace with its session and start."""

    no: int
    trace_id: bytes
    revision: int
    session: str | None
    start_ns: int


class StoredTraces:
    """Copies the traces of a batch from ``live`` into ``store``, as a source of a replay.

    ``items``: traces by number, each with the number of its session (0: none); ``whole``: sessions are scored, by all
    of their traces. ``gone``: the numbers of those that are not kept any more, once all are read."""

    def __init__(self, store: Store, live: StoreReader, items: Sequence[tuple[int, int]], whole: bool) -> None:
        self.store, self._live, self._whole = store, live, whole
        self.session_names: dict[int, str] = dict(
            numbers.each_of(
                live.connection(),
                "SELECT no, session_id FROM sessions WHERE no IN ({marks})",
                {group for _, group in items if group},
            )
        )
        self.about: dict[str, int] = {}
        """The numbers of the traces whose results are kept, by their ids."""
        self._placed = self._place(items)
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
        if not self._whole:
            return ()
        short = {each.session for each in self._placed if each.no in self.gone}
        return {each.session for each in self._placed if each.session} - short

    def _place(self, items: Sequence[tuple[int, int]]) -> list[Placed]:
        """Returns the wanted traces and those that have to be read along, ordered by start; notes the former."""
        reader, wanted = self._live.connection(), {no for no, _ in items}
        starts: dict[int, int] = {}
        of_session: dict[int, str] = {}
        for group, name in self.session_names.items():
            members = reader.execute(
                "SELECT no, start_ns FROM members WHERE session = ? ORDER BY start_ns, trace_id", (group,)
            ).fetchall()
            at = [index for index, (no, _) in enumerate(members) if no in wanted]
            read = {each for index in at for each in range(max(0, index - _BEFORE), index + 1)}
            for index in range(len(members)) if self._whole else sorted(read):
                no, start = members[index]
                starts[no], of_session[no] = start, name
        for no, group in items:  # those without a session, and a member that moved meanwhile
            if no not in starts:
                starts[no] = 0
                if group in self.session_names:
                    of_session[no] = self.session_names[group]
        query = "SELECT no, trace_id, revision FROM traces WHERE no IN ({marks})"
        placed = [
            Placed(no, trace_id, revision, of_session.get(no), starts[no])
            for no, trace_id, revision in numbers.each_of(reader, query, starts)
        ]
        self.about = {each.trace_id.hex(): each.no for each in placed if self._whole or each.no in wanted}
        return sorted(placed, key=lambda each: (each.start_ns, each.trace_id))

    def _due(self, placed: Placed, chunks: list[Chunk]) -> DueTrace | None:
        """Adds the stored spans and logs of a trace to ``chunks``; returns ``None`` where none is left."""
        try:
            parts = self._live.contents(placed.trace_id)
        except zstandard.ZstdError as error:
            _log.warning("the spans of a trace are damaged and cannot be read any more (%s)", error)
            parts = []
        if not parts:
            self.gone.add(placed.no)
            return None
        new = [Chunk(self.store.next_chunk_id(), placed.trace_id, logs, 1, 0, data) for logs, data in parts]
        chunks += new
        ids, size = tuple(chunk.id for chunk in new), sum(len(data) for _, data in parts)
        return DueTrace(placed.trace_id, Trigger.FILE, True, False, ids, frozenset(), 0, 0, size, placed.revision)


_NICE = 10
"""Scoring of past traces can wait, so all other processes go first."""
_FAILED = frozenset(why.value for why in PASSING)
_SECRET = "judge.secret"  # noqa: S105 - the name of a fact
_NO_ANSWER = "SELECT trace_id, why FROM jobs WHERE state = 'dead' OR why IN ('gone', 'unreadable', 'unfinished')"


class SharedVerdicts(Verdicts):
    """Reads verdicts from the collector's store, and writes new ones by ``write``; without it they are kept in memory,
    so that the next dry run counts their calls again."""

    def __init__(self, live: StoreReader, write: Callable[[str, bytes], Future[None]] | None) -> None:
        self._reader, self._write = live.connection, write
        self._given: dict[str, bytes] = {}
        self.remembered = 0

    def recall(self, key: str) -> bytes | None:
        if key in self._given:
            return self._given[key]
        found = super().recall(key)
        self.remembered += found is not None
        return found

    def keep(self, key: str, body: bytes) -> Future[None]:
        if self._write is not None:
            return self._write(key, body)
        self._given[key] = body
        done: Future[None] = Future()
        done.set_result(None)
        return done


class Scoring:
    """Scores batches of a run, one after the other. On one thread without an event loop."""

    def __init__(
        self, setup: RunSetup, evaluator: Evaluator, live: StoreReader, caller: Caller, verdicts: Verdicts
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
                return self._scored(StoredTraces(store, self._live, items, self._setup.sessions), items)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _scored(self, source: StoredTraces, items: Sequence[tuple[int, int]]) -> Scored:
        setup, results = self._setup, dict[tuple[str, str], Result]()
        failed: dict[str, str] = {}
        """Why each trace failed, by its id."""

        def decided(decision: Conclusion) -> None:
            failed.update((trace_id.hex(), kind) for trace_id, kind in decision.failed.items())

        where = None if setup.sessions else lambda run: run.unit.trace_id in source.about  # others only give context
        asked = setup.judge and ReplayJudge(source.store, self._evaluator, capped(setup.judge), caller=self._caller)
        with asked or nullcontext() as judge:
            for result in replay(source, self._evaluator, judge, where=where, on_decided=decided):
                results[result.unit.id, f"{result.unit.level}.{result.metric}"] = result
        for trace_id, why in source.store.reads.connection().execute(_NO_ANSWER):
            failed.setdefault(trace_id.hex(), why or "judge_failed")
        rows, sent = self._rows(source, results, failed)
        about = source.about
        whys = {about[id_]: why for id_, why in failed.items() if id_ in about} | dict.fromkeys(source.gone, "gone")
        return Scored(
            [(no, whys.get(no, "")) for no, _ in items], rows, pickle.dumps(sent) if setup.emit and sent else b""
        )

    def _rows(
        self, source: StoredTraces, results: Mapping[tuple[str, str], Result], failed: dict[str, str]
    ) -> tuple[list[RunResult], list[Result]]:
        """Returns the rows and results to keep, and notes in ``failed`` what has no score. Of a trace's turns the worst
        result makes the row; any score is preferred to none."""
        about_session = {name: -group for group, name in source.session_names.items()}
        rows: dict[tuple[int, str], RunResult] = {}
        kept = []
        for (unit, key), result in results.items():
            of_session = result.unit.level == "session"
            no = about_session.get(unit) if of_session else source.about.get(result.unit.trace_id)
            if no is None:
                continue
            result.run_id = self._setup.run_id
            kept.append(result)
            if result.why in _FAILED:
                failed.setdefault(unit if of_session else result.unit.trace_id, str(result.why))
            by, score = f"{result.evaluator.version} {result.evaluator.model or ''}", result.score
            before = rows.get((no, key))
            if before is None or (2.0 if score is None else score) < (2.0 if before.score is None else before.score):
                rows[no, key] = RunResult(
                    no, key, result.outcome, score, result.success, result.cost_usd, by, result.to_json()
                )
        return [*rows.values()], kept


class ParentCollector:
    """Implements :class:`pandaeval_collector.judge.call.Caller` by the collector, the parent of this process. To be
    made on the event loop that hears it, and asked from others."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._loop = peer, asyncio.get_running_loop()

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer: ModelAnswer = await asyncio.wrap_future(self._ask("complete", call))
        return answer

    def keep(self, key: str, body: bytes) -> Future[None]:
        """Asks the collector to store a verdict; the future is done when it has."""
        return self._ask("keep", key, body)

    def _ask(self, name: str, *arguments: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._peer.ask(name, *arguments), self._loop)


async def _open(setup: RunSetup, peer: Peer) -> Handlers:
    live, collector = StoreReader(setup.store), ParentCollector(peer)
    evaluator = Evaluator(load(setup.embedding), setup.settings)
    counting = CountingCaller(usual_answers(live)) if setup.counting else None
    verdicts = SharedVerdicts(live, None if counting else collector.keep)
    scoring = Scoring(setup, evaluator, live, counting or collector, verdicts)
    LIMIT.listen()
    thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-run")

    async def score(_: Any, items: Sequence[tuple[int, int]]) -> Scored:
        scored = await asyncio.get_running_loop().run_in_executor(thread, scoring.of, items)
        if counting is None:
            return scored
        counting.counted.remembered = verdicts.remembered
        return Scored(scored.items, [], b"", counting.counted)

    return {"score": score}


if __name__ == "__main__":
    serve_together(_open, nice=_NICE)

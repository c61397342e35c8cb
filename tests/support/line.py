"""A pipeline in this process with a manual clock."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.analysis.embedding import Embedder, load
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline import pipeline as its_module
from pandaeval_collector.pipeline.line_processes import LineProcesses
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.receivers import Accepted
from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import ResultRow, Store
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.collector import standing
from support.embedder import WordEmbedder
from support.line_here import LineHere, TestedSetup, line_of
from support.made_traces import MadeTrace
from support.receivers import until

Standing = dict[tuple[str, str], tuple[str, float | None]]
_TICK_S = 0.005

# Work becomes due only when a test advances the clock, so short ticks save idle time. The number of last ticks grows,
# so that their total time stays equal.
its_module._LAST_TICKS = round(its_module._LAST_TICKS * its_module._TICK_S / _TICK_S)
its_module._TICK_S = _TICK_S


class RunningPipeline:
    """A pipeline on its own store, as an async context manager; :meth:`restart` acts like a new process.

    ``now``: clock in seconds. ``workers``: processes, with ``environ``.
    """

    def __init__(
        self,
        folder: Path,
        timing: Timing | None = None,
        embedder: Embedder | None = None,
        on_results: Callable[[Sequence[ResultRow]], None] | None = None,
        settings: EvaluatorSettings | None = None,
        workers: int = 0,
        environ: Mapping[str, str] = os.environ,
        hands_over: bool = False,
        timeout: float = 60.0,
    ) -> None:
        self._on_results = on_results
        self.folder, self.timing = folder, timing or Timing(upkeep=1e9)
        self.embedder = embedder or (load("embedded") if workers else WordEmbedder())
        self.settings = settings or EvaluatorSettings()
        self._environ = environ
        self._number, self._hands_over = workers, hands_over
        self.now = 0.0
        self._timeout = timeout
        self.telemetry = Telemetry()
        self.store = self._open()

    async def __aenter__(self) -> RunningPipeline:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def restart(self) -> None:
        await self.stop()
        self.store = self._open()
        await self._start()

    async def stop(self, decide: bool = False) -> None:
        await self.pipeline.stop(decide)
        if self.workers is not None:
            await self.workers.close()
        self.store.close()

    async def _start(self) -> None:
        if self.workers is not None:
            await self.workers.start()
        await self.pipeline.start()

    def _open(self) -> Store:
        store = Store(self.folder, "off")
        self.line = line_of(store.reads, Evaluator(self.embedder, self.settings), self._hands_over)
        self.workers = None
        if self._number:
            setup = TestedSetup(self.folder, self.settings, self._hands_over)
            tests = str(Path(__file__).parents[1])
            path = os.pathsep.join(filter(None, [self._environ.get("PYTHONPATH"), tests]))
            environ = {**self._environ, "PYTHONPATH": path}
            self.workers = LineProcesses(self._number, setup, environ, self.telemetry, self._timeout)
        self.pipeline = Pipeline(
            store,
            self.workers or LineHere(self.line),
            self.timing,
            self.telemetry,
            lambda: self.now,
            hands_over=self._hands_over,
        )
        if self._on_results is not None:
            self.pipeline.listen(self._on_results)
        return store

    async def send(self, trace: MadeTrace, spans: Iterable[Span] | None = None) -> Accepted:
        """Send spans of a trace in one request."""
        return await self.pipeline.traces(trace.request(spans).SerializeToString())

    async def adopt(self, members: Iterable[bytes]) -> None:
        """Accept packed session members."""
        await self.pipeline.adopt([MemberMessage.read(each) for each in members], [])

    async def wait(self, seconds: float) -> None:
        """Advance the clock and wait for due decisions."""
        self.now += seconds
        before = self.pipeline.rounds
        # A minute, because processes may have to be restarted.
        await until(lambda: self.pipeline.rounds > before + 1 and not self.is_tidying, 60, _TICK_S)

    @property
    def is_tidying(self) -> bool:
        """Return whether old rows are being deleted."""
        running = self.pipeline._upkeep._round
        return running is not None and not running.done()

    async def settle(self) -> None:
        """Run until every trace and session is decided."""
        while self.pipeline.open_traces or self.pipeline.open_sessions:
            await self.wait(1000)

    def results(self) -> list[dict[str, Any]]:
        return [orjson.loads(row.body) for row in self.store.reads.results_after(0, 100_000)]

    def of(self, trace: MadeTrace, metric: str) -> list[dict[str, Any]]:
        """Return a metric's results about a trace, oldest first."""
        return [
            each for each in self.results() if each["trace_id"] == trace.trace_id.hex() and each["metric"] == metric
        ]

    def results_of(self, trace: MadeTrace) -> list[dict[str, Any]]:
        found = [each for each in self.results() if each["trace_id"] == trace.trace_id.hex()]
        assert found
        return [each for each in found if each["level"] == "trace"]

    def standing(self) -> Standing:
        """Return ID and score of each current result."""
        return ids_and_scores(self.results())


def ids_and_scores(results: Sequence[dict[str, Any]]) -> Standing:
    """Return ID and score of the newest results."""
    return {key: (each["id"], each["score"]) for key, each in standing(list(results)).items()}


def as_file(traces: Iterable[MadeTrace], timing: Timing | None = None) -> Standing:
    """Return a file run's results for these traces."""
    with TraceFiles((timing or Timing()).close) as run:
        for trace in traces:
            run.add(Request(False, trace.request().SerializeToString()))
        return ids_and_scores(
            [result.to_dict() for result in replay(run, Evaluator(WordEmbedder(), EvaluatorSettings()))]
        )


def cut(trace: MadeTrace, chance: random.Random) -> list[list[Span]]:
    """Split a trace into one to three parts, shuffled."""
    spans = list(trace.spans)
    chance.shuffle(spans)
    cuts = sorted(chance.sample(range(1, len(spans)), min(len(spans) - 1, chance.randint(0, 2))))
    return [spans[start:end] for start, end in zip([0, *cuts], [*cuts, len(spans)], strict=True)]


def in_session(trace: MadeTrace, session: str, spans: Iterable[Span] | None = None) -> MadeTrace:
    """The same trace as part of another session, of one service; ``spans`` limits the change to these."""
    changed = []
    touched = {span.span_id for span in (trace.spans if spans is None else spans)}
    for span in trace.spans:
        copy = Span.FromString(span.SerializeToString())
        for attribute in copy.attributes:
            if attribute.key == "gen_ai.conversation.id" and copy.span_id in touched:
                attribute.value.string_value = session
        changed.append(copy)
    service = trace.service if touched < {span.span_id for span in trace.spans} else "shop"
    return replace(trace, session=session, service=service, spans=tuple(changed))

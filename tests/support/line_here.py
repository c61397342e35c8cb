"""The line in the test's own process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Filing
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.main import LineServer
from pandaeval_collector.pipeline.line_processes import HeldBatch
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import StoreReader
from pandaeval_collector.store.live_groups import LiveGroups
from pandaeval_otel.assembly import DueTrace


class LineHere:
    """Stands in for :class:`pandaeval_collector.pipeline.line_processes.LineProcesses` without copies."""

    room = 1

    def __init__(self, line: Line) -> None:
        self.line = line
        self._handlers = LineServer(line).handlers()

    async def understand(self, due: Sequence[DueTrace]) -> HeldBatch:
        return HeldBatch(await self.ask("keep_understood", due))

    async def file(self, due: Sequence[DueTrace], understood: HeldBatch) -> Decision:
        return await self.decide("file", due, understood.held)

    async def decide(self, name: str, *arguments: Any) -> Decision:
        decision: Decision = await self.ask(name, *arguments)
        return decision

    async def ask(self, name: str, *arguments: Any) -> Any:
        return self._handlers[name](*arguments)

    def give_up(self) -> None:
        raise AssertionError("nothing hangs here")


@dataclass(frozen=True, slots=True)
class TestedSetup:
    """The setup of a tested line's process."""

    store: Path
    settings: EvaluatorSettings
    hands_over: bool

    def open(self, _: Telemetry) -> Line:
        return line_of(StoreReader(self.store), Evaluator(load("embedded"), self.settings), self.hands_over)


def line_of(reads: StoreReader, evaluator: Evaluator, hands_over: bool) -> Line:
    groups = LiveGroups(evaluator.embedder, reads.failure_groups())
    return Line(reads, evaluator, failures=groups, hands_over=hands_over)


def filed_through(pipeline: Pipeline, line: LineHere) -> Filing:
    async def file(name: str, answers: Any, *more: Any) -> None:
        await pipeline.commit(lambda: line.decide(name, pickle.dumps(answers), *more))

    return file

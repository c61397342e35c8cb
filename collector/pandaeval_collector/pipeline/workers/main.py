"""A worker process of the line: ``python -m pandaeval_collector.pipeline.workers.main``.

It reads the store and writes nothing, so it may be killed at any time. It answers batches of due traces with what
became of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.calls import Handlers
from pandaeval_collector.base.runtime.garbage import spare_the_garbage_collector
from pandaeval_collector.base.runtime.serving import Tell, serve
from pandaeval_collector.pipeline.line.understanding import Understanding, Understood
from pandaeval_collector.pipeline.workers.pool import WorkerSetup
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.cpu import CPU
from pandaeval_collector.store import StoreReader
from pandaeval_otel.assembly import DueTrace


def _open(setup: WorkerSetup, tell: Tell) -> Handlers:
    understanding = Understanding(StoreReader(setup.store), Evaluator(load(setup.embedding), setup.settings))

    def understand(due: Sequence[DueTrace]) -> list[Understood]:
        try:
            understood = understanding.of(due)
        finally:
            tell("spent", CPU.take())
        failpoints.reach("in_worker")
        return [each.without_spans() for each in understood]

    spare_the_garbage_collector()
    return {"understand": understand}


if __name__ == "__main__":
    serve(_open)

"""A worker process of the line: ``python -m pandaeval_collector.pipeline.workers.main``.

It reads the store and writes nothing, so it may be killed at any time. Frames come in on standard input and leave on
standard output, see :mod:`pandaeval_collector.pipeline.workers.wire`: the first in is the setup, the first out an empty
one when it is ready or else says why it is not; then one batch of traces in, one answer out. When standard input ends,
it ends.
"""

from __future__ import annotations

import queue

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.child import Parent, go_first
from pandaeval_collector.base.runtime.garbage import spare_the_garbage_collector
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.pipeline.line.understanding import Understanding
from pandaeval_collector.pipeline.workers import wire
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.cpu import CPU
from pandaeval_collector.store import StoreReader
from pandaeval_otel.base.component_errors import ERRORS


def main() -> None:
    """Serves requests until standard input ends."""
    go_first()
    parent = Parent()
    first = parent.receive()
    if first is None:
        return
    try:
        understanding = _open(wire.unpack_setup(first))
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no worker
        parent.send(f"{type(error).__name__}: {error}"[:500].encode(errors="replace"))
        return
    parent.send()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    parent.listen(requests.put)  # reads ahead
    for request in iter(requests.get, None):
        try:
            understood = understanding.of(wire.unpack_due(request))
            answer = wire.pack_understood(understood, _beside())
            failpoints.reach("in_worker")
        except Exception as error:  # noqa: BLE001 - the parent decides what becomes of a trace that cannot be read
            answer = wire.pack_error(error, _beside())
        parent.send(*answer)


def _beside() -> wire.Beside:
    return wire.Beside(ERRORS.take(), CPU.take())


def _open(setup: wire.WorkerSetup) -> Understanding:
    set_up(setup.log_level)
    ERRORS.hand_over()
    understanding = Understanding(StoreReader(setup.store), Evaluator(load(setup.embedding), setup.settings))
    spare_the_garbage_collector()
    return understanding


if __name__ == "__main__":
    main()

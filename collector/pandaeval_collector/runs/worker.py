"""The process of a run: ``python -m pandaeval_collector.runs.worker``.

It reads the collector's store and writes nothing there, so it may be killed at any time; whom it asks and what it
remembers goes through the collector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime.calls import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.runs.counting import CountedVerdicts, CountingCaller, usual_answers
from pandaeval_collector.runs.run_traces import LiveTraces
from pandaeval_collector.runs.stored_runs import Scoring, SharedVerdicts
from pandaeval_collector.runs.wire import RunSetup, Scored
from pandaeval_collector.scoring.evaluator import Evaluator

_NICE = 10
"""Scoring of past traces can wait, so all other processes go first."""


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
    live, collector = LiveTraces(setup.store), ParentCollector(peer)
    evaluator = Evaluator(load(setup.embedding), setup.settings)
    counting = CountingCaller(usual_answers(live)) if setup.counting else None
    verdicts = CountedVerdicts(live) if counting else SharedVerdicts(live, collector.keep)
    scoring = Scoring(setup, evaluator, live, counting or collector, verdicts)
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

"""The process of a run: ``python -m pandaeval_collector.runs.worker``.

It reads the collector's store and writes nothing there, so it may be killed at any time; whom it asks and what it
remembers goes through the collector. Frames come in on standard input and leave on standard output, see
:mod:`pandaeval_collector.runs.wire`. When standard input ends, it ends.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime.child import Parent
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.runs import wire
from pandaeval_collector.runs.counting import CountedVerdicts, CountingCaller, usual_answers
from pandaeval_collector.runs.run_traces import LiveTraces
from pandaeval_collector.runs.scoring import Scoring, SharedVerdicts
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_otel.base.component_errors import ERRORS

_NICE = 10
"""Scoring of past traces can wait, so all other processes go first."""


class ParentCollector:
    """Asks the collector, the parent of this process, for judges' answers. On one event loop."""

    def __init__(self, write: Callable[[Any], None]) -> None:
        self._write = write
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._keeping: dict[int, Future[None]] = {}

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """See :class:`pandaeval_collector.judge.call.Caller`."""
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            self._write(("call", number, call))
            return wire.answer_of(await answer)
        finally:
            del self._answers[number]

    def keep(self, key: str, body: bytes) -> Future[None]:
        """Asks the collector to store a verdict; the future is done when it has."""
        number, done = next(self._numbers), Future[None]()
        self._keeping[number] = done
        self._write(("keep", number, key, body))
        return done

    def take(self, message: Any) -> None:
        """Passes the collector's answer to the waiting call, or its confirmation to the waiting :meth:`keep`."""
        if message[0] == "kept":
            self._keeping.pop(message[1]).set_result(None)
        elif (answer := self._answers.get(message[1])) is not None and not answer.done():
            answer.set_result(message[2])


async def _serve(setup: wire.RunSetup, parent: Parent) -> None:
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[wire.TracesToScore] = asyncio.Queue()
    collector = ParentCollector(lambda message: parent.send(wire.body(message)))

    def take(message: Any) -> None:
        if message[0] == "batch":
            inbox.put_nowait(message[1])
        else:
            collector.take(message)

    live = LiveTraces(setup.store)
    evaluator = Evaluator(load(setup.embedding), setup.settings)
    caller = CountingCaller(usual_answers(live) if setup.counting else {})
    if setup.counting:
        verdicts: SharedVerdicts = CountedVerdicts(live)
        scoring = Scoring(setup, evaluator, live, caller, verdicts)
    else:
        verdicts = SharedVerdicts(live, collector.keep)
        scoring = Scoring(setup, evaluator, live, collector, verdicts)
    parent.send(wire.body(("ready", "")))
    parent.listen(lambda frame: loop.call_soon_threadsafe(take, wire.unpacked(frame)))
    while True:
        scored = await scoring.of(await inbox.get())
        if setup.counting:
            caller.counted.remembered = verdicts.remembered
            scored = wire.Scored(scored.items, [], [], caller.counted)
        _tell_errors(parent)
        parent.send(wire.body(("done", scored)))


def _tell_errors(parent: Parent) -> None:
    """Sends the parent the errors that components raised since the last call."""
    if raised := ERRORS.take():
        parent.send(wire.body(("raised", raised)))


def main() -> None:
    """Serves until standard input ends."""
    parent = Parent(nice=_NICE)
    first = parent.receive()
    if first is None:
        return
    setup: wire.RunSetup = wire.unpacked(first)
    set_up(setup.log_level)
    ERRORS.hand_over()
    try:
        asyncio.run(_serve(setup, parent))
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no more to come
        _tell_errors(parent)
        parent.send(wire.body(("broken", f"{type(error).__name__}: {error}"[:500])))
        os._exit(1)  # the thread that reads holds standard input, over which the interpreter would stumble


if __name__ == "__main__":
    main()

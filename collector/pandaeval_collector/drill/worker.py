"""The process of a scheduled drill: ``python -m pandaeval_collector.drill.worker``.

It reads the collector's store and writes nothing there, so it may be killed at any time. One frame comes in on standard
input, the setup; one leaves on standard output, what the drill found. When standard input ends, it ends.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime.child import Parent
from pandaeval_collector.base.runtime.logs import set_up
from pandaeval_collector.drill.drill import Drill
from pandaeval_collector.drill.fault import faults
from pandaeval_collector.drill.stored import stored_requests
from pandaeval_collector.runs import wire
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_otel.assembly import CloseRules

_NICE = 19
"""Everything else goes first."""


@dataclass(frozen=True, slots=True)
class DrillSetup:
    """``store``: the data directory. ``runs``: so many of its newest are looked at; ``copies``: of each fault at most;
    ``seconds``: time after which the drill ends with what it has counted."""

    store: Path
    embedding: str
    settings: EvaluatorSettings
    rules: CloseRules
    runs: int
    copies: int
    seconds: float
    log_level: int


def drilled(setup: DrillSetup) -> dict[str, Any]:
    """What the drill found, without examples: those would outlive what is stored of the runs."""
    end = time.monotonic() + setup.seconds
    scorer = Evaluator(load(setup.embedding), setup.settings)
    with Drill(lambda where: FileRun(scorer, setup.rules, where=where), faults(), setup.copies) as drill:
        for request in stored_requests(setup.store, setup.runs):
            drill.add(request)
        found = drill.run(is_over=lambda: time.monotonic() > end).to_dict()
    return {**found, "faults": {name: {**each, "examples": []} for name, each in found["faults"].items()}}


def main() -> None:
    """Makes one drill."""
    parent = Parent(nice=_NICE)
    first = parent.receive()
    if first is None:
        return
    setup: DrillSetup = wire.unpacked(first)
    set_up(setup.log_level)
    parent.listen(lambda frame: None)
    try:
        answer: Any = ("done", drilled(setup))
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is nothing
        answer = ("broken", f"{type(error).__name__}: {error}"[:500])
    parent.send(wire.body(answer))
    os._exit(0)  # the thread that reads holds standard input, over which the interpreter would stumble


if __name__ == "__main__":
    main()

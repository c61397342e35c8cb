"""Puts together, from the configuration, what looks at verdicts more than once: a cascade, votes, retests, a second
judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.agreement import Agreement
from pandaeval_collector.jobs.cascade import Cascade
from pandaeval_collector.jobs.compare import AskedAgain
from pandaeval_collector.jobs.complaints import warn_of_second
from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.jobs.setup import JudgeConfig, StoredMemory
from pandaeval_collector.jobs.votes import Votes
from pandaeval_collector.store import Store


@dataclass(frozen=True, slots=True)
class Checks:
    """``verdicts`` gives a verdict; ``beside`` look at it, one after the other."""

    verdicts: Cascade
    beside: Sequence[AskedAgain] = ()


def open_checks(judge: JudgeConfig, store: Store, desks: Desks, telemetry: Telemetry) -> Checks:
    """On one event loop."""
    agreement, memory = Agreement(store, telemetry), StoredMemory(store, telemetry)
    beside = [AskedAgain(desks, agreement, telemetry, judge.retest)]
    if judge.second is not None:
        for model in [model for model in judge.setup.models if model != judge.second] or [judge.second]:
            warn_of_second(model, judge.second)
        beside.append(AskedAgain(desks, agreement, telemetry, judge.second_share, judge.second, memory))
    return Checks(Cascade(desks, memory, Votes(desks, memory, judge.votes)), beside)

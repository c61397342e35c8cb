"""Puts together, from the configuration, what looks at verdicts more than once: votes, retests, a second judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judging.agreement import Agreement
from pandaeval_collector.judging.compare import Check
from pandaeval_collector.judging.kinship import warn_of_second
from pandaeval_collector.judging.retest import Retest
from pandaeval_collector.judging.second import SecondJudge
from pandaeval_collector.judging.setup import JudgeConfig, StoredMemory
from pandaeval_collector.judging.votes import Votes
from pandaeval_collector.store import Store
from pandaeval_collector.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Checks:
    """``votes`` gives a verdict; ``beside`` look at it, one after the other."""

    votes: Votes
    beside: Sequence[Check] = ()


def open_checks(judge: JudgeConfig, store: Store, caller: Caller, telemetry: Telemetry, secrets: bool) -> Checks:
    """``secrets``: whether they are redacted in what is given with a question. On one event loop."""
    agreement, memory = Agreement(store, telemetry), StoredMemory(store, telemetry)
    beside: list[Check] = [Retest(caller, agreement, telemetry, judge.retest, secrets)]
    if judge.second is not None:
        for model in [model for model in judge.setup.models if model != judge.second] or [judge.second]:
            warn_of_second(model, judge.second)
        share = judge.second_share
        beside.append(SecondJudge(caller, memory, agreement, telemetry, judge.second, share, secrets))
    return Checks(Votes(caller, memory, judge.votes, secrets), beside)

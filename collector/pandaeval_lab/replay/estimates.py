"""Estimates evaluation runs from the calls of a sample of traces."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Literal

from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_collector.runs.spec import Chosen
from pandaeval_collector.store import StoreReader
from pandaeval_collector.store.verdicts import Verdicts
from pandaeval_lab.replay.counting import NO_CALL, CallCount

MOST = 200
"""Maximum traces read for the estimate. Other traces are assumed to be similar."""
_SEED = 20
DETAILS: tuple[Literal["none", "failing", "all"], ...] = ("none", "failing", "all")
WRONG = 0.5
"""The share of verdicts that are assumed to be wrong or unclear."""


class NewVerdicts(Verdicts):
    def __init__(self, live: StoreReader) -> None:
        self._reader = live.connection
        self._new: dict[str, bytes] = {}
        self.remembered = 0

    def recall(self, key: str) -> bytes | None:
        if key in self._new:
            return self._new[key]
        verdict = super().recall(key)
        self.remembered += verdict is not None
        return verdict

    def keep(self, key: str, body: bytes) -> Future[None]:
        self._new[key] = body
        done: Future[None] = Future()
        done.set_result(None)
        return done


def sample_of(chosen: Sequence[Chosen]) -> list[Chosen]:
    """Return about 200 traces, in whole sessions; always the same."""
    groups: dict[tuple[int, int], list[Chosen]] = {}
    for no, session in chosen:
        groups.setdefault((session, 0) if session else (0, no), []).append((no, session))
    order = sorted(groups)
    if len(chosen) > MOST:
        random.Random(_SEED).shuffle(order)
    taken: list[Chosen] = []
    for key in order:
        if taken and len(taken) + len(groups[key]) > MOST:
            break
        taken += groups[key]
    return taken


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls of a sample by model. ``remembered``: cached answers."""

    models: Mapping[str, CallCount]
    remembered: float = 0.0


def with_some_wrong(counted: Mapping[str, Counted]) -> dict[str, Counted]:
    """Return the counts by ``judge.detail``. Of ``failing``, all verdicts were wrong."""
    least, most = counted["none"], counted["failing"]
    models: dict[str, CallCount] = {}
    for model, (calls, into, out) in most.models.items():
        few = least.models.get(model, NO_CALL)
        models[model] = _between(few[0], calls), _between(few[1], into), _between(few[2], out)
    return {**counted, "failing": Counted(models, _between(least.remembered, most.remembered))}


def _between(least: float, most: float) -> float:
    return least + WRONG * (most - least)


def estimate(chosen: Sequence[Chosen], counted: Counted, of: int, prices: Mapping[str, Price]) -> CostEstimate:
    times = len(chosen) / of if of else 0.0
    cost, models = 0.0, {}
    for model, (calls, into, out) in counted.models.items():
        price = prices.get(model)
        cost += times * (into * price[0] + out * price[1]) if price is not None else math.nan
        models[model] = {"calls": round(calls * times), "tokens": round((into + out) * times)}
    calls, into, out = (round(times * sum(column)) for column in zip(NO_CALL, *counted.models.values(), strict=True))
    return CostEstimate(
        traces=len(chosen),
        sessions=len({session for _, session in chosen if session}),
        counted=of,
        calls=calls,
        prompt_tokens=into,
        completion_tokens=out,
        remembered=round(counted.remembered * times),
        cost_usd=None if math.isnan(cost) else round(cost, 6),
        models=models,
    )


def by_detail(made: Mapping[str, CostEstimate], chosen: str) -> CostEstimate:
    """Return the estimate for ``judge.detail``, with calls and cost of each setting."""
    figures = {detail: {"calls": each.calls, "cost_usd": each.cost_usd} for detail, each in made.items()}
    return replace(made[chosen], by_detail=figures)

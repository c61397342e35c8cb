"""Estimates evaluation runs from the calls of a sample of traces."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Literal

from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.runs.manager import CostEstimate
from pandaeval_collector.runs.spec import Chosen
from pandaeval_collector.store import StoreReader
from pandaeval_collector.store.verdicts import Verdicts
from pandaeval_lab.replay.counting import CallCount

MOST = 200
"""Traces that are read and packed at most; the others are assumed to be like them."""
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


def estimate(
    chosen: Sequence[Chosen], counted: CallCount, of: int, prices: Mapping[str, Price], remembered: int = 0
) -> CostEstimate:
    times = len(chosen) / of if of else 0.0
    cost, models = 0.0, {}
    for model, (calls, into, out) in counted.models.items():
        price = prices.get(model)
        cost += times * (into * price[0] + out * price[1]) if price is not None else float("nan")
        models[model] = {"calls": round(calls * times), "tokens": round((into + out) * times)}
    return CostEstimate(
        traces=len(chosen),
        sessions=len({session for _, session in chosen if session}),
        counted=of,
        calls=round(counted.calls * times),
        prompt_tokens=round(counted.prompt_tokens * times),
        completion_tokens=round(counted.completion_tokens * times),
        remembered=round(remembered * times),
        cost_usd=None if cost != cost else round(cost, 6),
        models=models,
    )


def by_detail(made: Mapping[str, CostEstimate], chosen: str) -> CostEstimate:
    """Return the estimate for ``judge.detail``, with calls and cost of each setting."""
    least, most = made["none"], made["failing"]
    figures = {detail: {"calls": each.calls, "cost_usd": each.cost_usd} for detail, each in made.items()}
    counts = ("calls", "prompt_tokens", "completion_tokens", "remembered")
    parts: dict[str, Any] = {name: round(_between(getattr(least, name), getattr(most, name))) for name in counts}
    unknown = least.cost_usd is None or most.cost_usd is None
    usd = None if unknown else round(_between(least.cost_usd or 0.0, most.cost_usd or 0.0), 6)
    failing = replace(most, **parts, cost_usd=usd, models=_models(least.models, most.models))
    figures["failing"] = {"calls": failing.calls, "cost_usd": usd}
    return replace(failing if chosen == "failing" else made[chosen], by_detail=figures)


def _between(least: float, most: float) -> float:
    return least + WRONG * (most - least)


def _models(least: Mapping[str, Any], most: Mapping[str, Any]) -> dict[str, Any]:
    nothing = {"calls": 0, "tokens": 0}
    return {
        model: {name: round(_between(least.get(model, nothing)[name], held[name])) for name in held}
        for model, held in most.items()
    }

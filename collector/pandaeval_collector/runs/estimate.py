"""What a run would do, before it does: how many traces, how many calls of judges, what they would cost."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.judge.known import Price
from pandaeval_collector.runs.planning import Chosen, choose, sampled
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.runs.wire import CallCount
from pandaeval_collector.store import Store

MOST = 200
"""So many traces are read and packed; of more, the others are taken to be like them."""
_SEED = 20


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """``counted``: of how many traces the calls were counted, all or a sample; ``remembered``: questions of these that
    were answered before and cost nothing; ``cost_usd``: ``None`` where a price is not known."""

    traces: int
    sessions: int
    counted: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    remembered: int
    cost_usd: float | None
    models: dict[str, Any] = field(default_factory=dict)


def all_chosen(store: Store, spec: RunSpec) -> list[Chosen]:
    """Every trace that the run would be about. Blocks."""
    upto, after = 1 << 62, 0
    found: list[Chosen] = []
    while after < upto:
        page, after = choose(store, spec, after, upto)
        found += sampled(page, spec)
    return found


def some(chosen: Sequence[Chosen]) -> list[tuple[int, int]]:
    """Up to about 200 of them, whole sessions, the same ones each time."""
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for no, session, _ in chosen:
        groups.setdefault((session, 0) if session else (0, no), []).append((no, session))
    order = sorted(groups)
    if len(chosen) > MOST:
        random.Random(_SEED).shuffle(order)
    taken: list[tuple[int, int]] = []
    for key in order:
        if taken and len(taken) + len(groups[key]) > MOST:
            break
        taken += groups[key]
    return taken


def extrapolated(chosen: Sequence[Chosen], counted: CallCount, of: int, prices: Mapping[str, Price]) -> CostEstimate:
    """The whole from a part: ``of`` so many traces."""
    times = len(chosen) / of if of else 0.0
    cost, models = 0.0, {}
    for model, (calls, into, out) in counted.models.items():
        price = prices.get(model)
        cost += times * (into * price[0] + out * price[1]) if price is not None else float("nan")
        models[model] = {"calls": round(calls * times), "tokens": round((into + out) * times)}
    return CostEstimate(
        traces=len(chosen),
        sessions=len({session for _, session, _ in chosen if session}),
        counted=of,
        calls=round(counted.calls * times),
        prompt_tokens=round(counted.prompt_tokens * times),
        completion_tokens=round(counted.completion_tokens * times),
        remembered=round(counted.remembered * times),
        cost_usd=None if cost != cost else round(cost, 6),
        models=models,
    )

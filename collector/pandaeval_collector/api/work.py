"""What a running collector tells the API of its own work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.metric import Metric
from pandaeval_collector.store.people import Fates
from pandaeval_otel.labels import Label


@dataclass(frozen=True, slots=True)
class Work:
    """``jobs``: judge jobs by state; ``spent``: US dollars of today, ``daily_usd``: the most of them; ``judge``: the
    model that is asked; ``metrics``: all that there are, each with its threshold; ``annotate``: keeps
    people's verdicts."""

    jobs: Callable[[], dict[str, int]]
    spent: Callable[[], float]
    annotate: Callable[[Sequence[Label]], Future[Fates]]
    judge: str | None = None
    daily_usd: float | None = None
    metrics: Sequence[tuple[Metric[Any, Any], float]] = ()

"""What the API knows of the collector whose store it reads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.store import StoreAccess


@dataclass(frozen=True, slots=True)
class PageWork:
    """Settings of the page. ``links``: addresses in other programs by their names, with ``{trace_id}`` and the like;
    ``grpc_port``: the port of OTLP/gRPC."""

    links: Mapping[str, str]
    grpc_port: int | None = None


async def _no_errors() -> Mapping[tuple[str, str], int]:
    return {}


@dataclass(frozen=True, slots=True)
class Work:
    """A running collector, for the API. ``store``: for job counts, costs and labels; ``None`` without a collector.
    ``component_errors``: per component kind and name since the start. ``metrics``: all, with thresholds. ``modules``:
    of custom metrics (:mod:`pandaeval_collector.scoring.registry`). ``judge``: model. ``daily_usd``: daily limit.
    ``page``: page settings or ``None``.
    """

    store: StoreAccess | None = None
    component_errors: Callable[[], Coroutine[Any, Any, Mapping[tuple[str, str], int]]] = _no_errors
    metrics: Callable[[], Sequence[tuple[Metric[Any, Any], float]]] = tuple
    modules: tuple[str, ...] = ()
    judge: str | None = None
    daily_usd: float | None = None
    page: PageWork | None = None

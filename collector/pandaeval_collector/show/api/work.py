"""The collector's state for the API."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.store import Dismissal, StoreAccess


@dataclass(frozen=True, slots=True)
class PageWork:
    """Settings of the page.

    ``links``: URL templates by name, with ``{trace_id}`` and similar. ``grpc_port``: of OTLP/gRPC.
    """

    links: Mapping[str, str]
    grpc_port: int | None = None


async def _no_errors() -> Mapping[tuple[str, str], int]:
    return {}


async def _none_down() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Work:
    """A running collector.

    ``store``: ``None`` without a collector. ``component_errors``: by kind and name. ``modules``: custom metrics.
    ``judge``: model. ``daily_usd``: limit. ``dismiss``: takes a finding out of all counts. ``sinks_down``: exporters.
    ``store_limit``: bytes.
    """

    store: StoreAccess | None = None
    component_errors: Callable[[], Coroutine[Any, Any, Mapping[tuple[str, str], int]]] = _no_errors
    metrics: Callable[[], Sequence[tuple[Metric, float]]] = tuple
    modules: tuple[str, ...] = ()
    judge: str | None = None
    daily_usd: float | None = None
    store_limit: int | None = None
    page: PageWork | None = None
    dismiss: Callable[[Dismissal], Coroutine[Any, Any, None]] | None = None
    sinks_down: Callable[[], Coroutine[Any, Any, Sequence[str]]] = _none_down

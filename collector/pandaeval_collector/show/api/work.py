"""What a running collector tells the API of its own work."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.store.people import Fates
from pandaeval_otel.wire.labels import HumanLabel


@dataclass(frozen=True, slots=True)
class PageWork:
    """Settings of the page. ``links``: addresses in other programs by their names, with ``{trace_id}`` and the like;
    ``refresh_s``: seconds between two looks for what is new; ``grpc_port``: the port of OTLP/gRPC."""

    links: Mapping[str, str]
    refresh_s: float
    grpc_port: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What the API asks of a running collector. ``jobs``: judge jobs by state; ``spent``: US dollars of today,
    ``daily_usd``: their limit; ``judge``: the judge's model; ``metrics``: all metrics, each with its threshold;
    ``modules``: those of the user's own metrics (:mod:`pandaeval_collector.scoring.registry`); ``page``: settings of
    the page, ``None`` without one; ``session_now``: the results that a session would have if it ended now, as JSON,
    ``None`` for one that is not open; ``annotate``: stores people's verdicts; ``drawing``: draws runs to be labelled,
    in one transaction. These three are ``None`` where no collector runs. ``component_errors``: how often each
    component, by kind and name, raised since the collector began."""

    jobs: Callable[[], dict[str, int]] = dict
    spent: Callable[[], float] = float
    session_now: Callable[[str], Coroutine[Any, Any, Sequence[bytes] | None]] | None = None
    annotate: Callable[[Sequence[HumanLabel]], Future[Fates]] | None = None
    drawing: Callable[[Callable[[sqlite3.Connection], Any]], Future[Any]] | None = None
    component_errors: Callable[[], Mapping[tuple[str, str], int]] = dict
    judge: str | None = None
    daily_usd: float | None = None
    metrics: Sequence[tuple[Metric[Any, Any], float]] = ()
    modules: tuple[str, ...] = ()
    page: PageWork | None = None


@dataclass(frozen=True, slots=True)
class ReadSetup:
    """What the process that answers reads knows of its collector. ``store``: the data directory; ``thresholds``: those
    of all metrics, by key; ``has_runs``: the collector works on runs; the rest as in :class:`Work`."""

    store: Path
    version: str
    judge: str | None
    daily_usd: float | None
    thresholds: Mapping[str, float]
    modules: tuple[str, ...]
    page: PageWork | None
    has_runs: bool

"""The values that the tables of evaluation runs take and return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pandaeval_collector.base.errors import UserError

RUN = (
    "no, id, schedule, state, created_at, started_at, ended_at, upto, planned, total, done, failed, calls, tokens, "
    "cost_usd, error, body"
)
ENDED = "('done', 'cancelled')"


MOST_WAITING = 100
"""Most runs that may be queued, and most schedules that may be kept."""


class FullError(UserError):
    """There are as many runs or schedules as there may be."""


class KeyTakenError(ValueError):
    """The idempotency key was used for another run."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it is stored. Times are Unix seconds of the store's calendar; ``total``, ``done``, ``failed``: of its
    traces; ``calls``, ``tokens``, ``cost_usd``: of judges; ``body``: what was asked for."""

    no: int
    id: str
    schedule: str
    state: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    upto: int
    planned: int
    total: int
    done: int
    failed: int
    calls: int
    tokens: int
    cost_usd: float
    error: str
    body: bytes

    @property
    def ended(self) -> bool:
        return self.state in ("done", "cancelled")


@dataclass(slots=True)
class RunResult:
    """A result of a run. ``about``: the number of the trace, or that of the session below zero; ``by``: version of the
    metric, and judge or embedder; ``body``: its JSON object."""

    about: int
    metric: str
    outcome: str
    score: float | None
    success: bool | None
    cost_usd: float
    by: str
    body: bytes


@dataclass(slots=True)
class RunBatch:
    """The outcome of a batch of a run. ``items``: each trace, and why it failed (empty: it did not); ``beside``: those
    that were not chosen before, each with the number of its session (of a run that stands beside live judging)."""

    run: int
    items: Sequence[tuple[int, str]]
    results: Sequence[RunResult]
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    beside: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule. ``fired_at``: Unix seconds; ``seen``: up to when its runs cover decisions, by the store's
    calendar."""

    id: str
    cron: str
    paused: bool
    created_at: float
    fired_at: float
    seen: float
    body: bytes

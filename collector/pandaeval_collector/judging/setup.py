"""A judge put together: its process, its limits, its money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from pandaeval_collector.errors import UserError
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judge.client import Setup, WorkerProcess
from pandaeval_collector.store import Store


class NoJudgeError(UserError):
    """A judge is configured and cannot be had."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``concurrency``: calls at a time; ``rpm``, ``tpm``: calls and tokens per minute; ``daily_usd``: per day (UTC)."""

    concurrency: int = 8
    rpm: int | None = None
    tpm: int | None = None
    daily_usd: float | None = None


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """A judge as it is configured."""

    setup: Setup
    limits: Limits
    over_budget: Literal["unscored", "wait"] = "unscored"


class StoredPurse:
    """Implements :class:`pandaeval_collector.judge.limits.Purse` on the store: a crash resets nothing."""

    def __init__(self, store: Store, daily_usd: float) -> None:
        self._jobs, self._limit = store.jobs, daily_usd

    async def reserve(self, usd: float) -> float | None:
        now = time.time()
        granted = await asyncio.wrap_future(self._jobs.reserve(usd, self._limit, now))
        return now if granted else None

    async def settle(self, reserved: float, usd: float, reserved_at: float) -> None:
        await asyncio.wrap_future(self._jobs.settle(reserved, usd, reserved_at))


class StoredMemory:
    """Implements :class:`pandaeval_collector.judge.desk.Memory` on the store."""

    def __init__(self, store: Store) -> None:
        self._jobs = store.jobs

    def recall(self, key: str) -> bytes | None:
        return self._jobs.verdict(key)

    async def keep(self, key: str, body: bytes) -> None:
        await asyncio.wrap_future(self._jobs.keep_verdict(key, body))


def check_installed() -> None:
    """Raises :class:`NoJudgeError` when the extra is missing, without importing what is heavy."""
    missing = [name for name in ("litellm", "aiolimiter") if find_spec(name) is None]
    if missing:
        raise NoJudgeError(
            f"judge.model is set, and {missing[0]} is not installed; "
            'install it with: pip install "pandaeval-otel[judge]"'
        )


def open_caller(store: Store, judge: JudgeConfig, environ: Mapping[str, str]) -> tuple[WorkerProcess, Caller]:
    """The process (to be closed) and the caller on top of it. Raises :class:`NoJudgeError`."""
    check_installed()
    from pandaeval_collector.judge.limits import LimitedCaller

    limits = judge.limits
    process = WorkerProcess(judge.setup, environ)
    purse = None if limits.daily_usd is None else StoredPurse(store, limits.daily_usd)
    return process, LimitedCaller(process, limits.concurrency, limits.rpm, limits.tpm, purse)

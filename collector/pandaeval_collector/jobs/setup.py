"""Builds a judge from its configuration: its process, its limits, its budget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.judge.call import RECORDED, Caller
from pandaeval_collector.judge.client import JudgeProcessSetup, WorkerProcess
from pandaeval_collector.judge.desk import Desk, Memory
from pandaeval_collector.judge.limits import LimitedCaller, Spend
from pandaeval_collector.scoring.evaluator import JudgeSettings
from pandaeval_collector.store import StoreAccess


class NoJudgeError(UserError):
    """A judge is configured but cannot be used."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a judge. ``concurrency``: calls at a time; ``rpm``, ``tpm``: calls and tokens per minute;
    ``daily_usd``, ``daily_tokens``: per day (UTC)."""

    concurrency: int = 8
    rpm: int | None = None
    tpm: int | None = None
    daily_usd: float | None = None
    daily_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """The configuration of a judge. ``votes``: verdicts on each question."""

    setup: JudgeProcessSetup
    limits: Limits
    over_budget: Literal["unscored", "wait"] = "unscored"
    votes: int = 1


class StoredPurse:
    """Implements :class:`pandaeval_collector.judge.limits.Purse` on the store: sums survive a crash."""

    def __init__(self, store: StoreAccess, limits: Limits) -> None:
        self._spending, self._limits = store.spending, limits
        self.share(1.0)

    def share(self, part: float) -> None:
        usd, tokens = self._limits.daily_usd, self._limits.daily_tokens
        self._most = None if usd is None else usd * part, None if tokens is None else int(tokens * part)

    async def reserve(self, spend: Spend) -> float | None:
        now = self._spending.today(time.time())
        granted = await asyncio.wrap_future(self._spending.reserve((spend.usd, spend.tokens), self._most, now))
        return now if granted else None

    async def settle(self, reserved: Spend, spent: Spend, reserved_at: float) -> None:
        amounts = (reserved.usd, reserved.tokens), (spent.usd, spent.tokens)
        await asyncio.wrap_future(self._spending.settle(*amounts, reserved_at))


class StoredMemory:
    """Implements :class:`pandaeval_collector.judge.desk.Memory` on the store, and counts how often an answer was
    found."""

    def __init__(self, store: StoreAccess, telemetry: Telemetry) -> None:
        self._verdicts, self._telemetry = store.verdicts, telemetry

    def recall(self, key: str) -> bytes | None:
        found = self._verdicts.recall(key)
        self._telemetry.add("pandaeval.judge.answers", "asked" if found is None else "remembered")
        return found

    async def keep(self, key: str, body: bytes) -> None:
        await asyncio.wrap_future(self._verdicts.keep(key, body))


def check_installed(api_base: str | None) -> None:
    """Raises :class:`NoJudgeError` when the judge's packages are missing, without importing them. Recorded replies need
    none."""
    missing = [name for name in ("litellm", "aiolimiter") if find_spec(name) is None]
    if missing and not (api_base or "").startswith(RECORDED):
        raise NoJudgeError(
            f"judge.model is set, and {missing[0]} is not installed; install it with: {installation('judge')}"
        )


def open_caller(
    store: StoreAccess, judge: JudgeConfig, environ: Mapping[str, str]
) -> tuple[WorkerProcess, LimitedCaller]:
    """Makes the judge's process, which the caller closes, and a limited caller of it. Raises :class:`NoJudgeError`."""
    check_installed(judge.setup.api_base)
    limits = judge.limits
    process = WorkerProcess(judge.setup, environ)
    purse = StoredPurse(store, limits) if (limits.daily_usd, limits.daily_tokens) != (None, None) else None
    return process, LimitedCaller(process, limits.concurrency, limits.rpm, limits.tpm, purse)


def desk_of(caller: Caller, judge: JudgeSettings | None, memory: Memory) -> Desk:
    """Makes the desk that asks through ``caller``. ``judge``: the settings; ``None``: the defaults."""
    if judge is None:
        return Desk(caller, memory)
    return Desk(caller, memory, language=judge.language, asked_with=judge.asked_with, secrets=judge.secrets)

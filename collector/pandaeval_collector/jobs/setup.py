"""Builds a judge from its configuration: process, limits, budget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from importlib.util import find_spec

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.judge.call import RECORDED, Caller, JudgeConfig
from pandaeval_collector.judge.client import JudgeClient, Memory
from pandaeval_collector.judge.limits import LimitedCaller
from pandaeval_collector.judge.process import WorkerProcess
from pandaeval_collector.scoring.evaluator import JudgeSettings
from pandaeval_collector.store import StoreAccess


class NoJudgeError(UserError):
    """The configured judge is unusable."""


class StoredPurse:
    """:class:`pandaeval_collector.judge.limits.Purse` on the store, which survives crashes."""

    def __init__(self, store: StoreAccess, daily_usd: float) -> None:
        self._spending, self._daily_usd = store.spending, daily_usd
        self.share(1.0)

    def share(self, part: float) -> None:
        self._most = self._daily_usd * part

    async def reserve(self, usd: float) -> float | None:
        now = self._spending.today(time.time())
        granted = await asyncio.wrap_future(self._spending.reserve(usd, self._most, now))
        return now if granted else None

    async def settle(self, reserved: float, spent: float, reserved_at: float) -> None:
        await asyncio.wrap_future(self._spending.settle(reserved, spent, reserved_at))


class StoredMemory:
    """:class:`pandaeval_collector.judge.client.Memory` on the store, with a hit count."""

    def __init__(self, store: StoreAccess, telemetry: Telemetry) -> None:
        self._verdicts, self._telemetry = store.verdicts, telemetry

    def recall(self, key: str) -> bytes | None:
        found = self._verdicts.recall(key)
        self._telemetry.add("pandaeval.judge.answers", "asked" if found is None else "remembered")
        return found

    async def keep(self, key: str, body: bytes) -> None:
        await asyncio.wrap_future(self._verdicts.keep(key, body))


def check_installed(api_base: str | None) -> None:
    """Raise :class:`NoJudgeError` if packages are missing, without importing them. Recorded replies need none."""
    missing = [name for name in ("litellm", "aiolimiter") if find_spec(name) is None]
    if missing and not (api_base or "").startswith(RECORDED):
        raise NoJudgeError(
            f"judge.model is set, and {missing[0]} is not installed; install it with: {installation('judge')}"
        )


def open_caller(
    store: StoreAccess, judge: JudgeConfig, environ: Mapping[str, str]
) -> tuple[WorkerProcess, LimitedCaller]:
    """Make the judge's process, which the caller closes, and its limited caller. Raises :class:`NoJudgeError`."""
    check_installed(judge.api_base)
    process = WorkerProcess(judge, environ)
    purse = None if judge.daily_usd is None else StoredPurse(store, judge.daily_usd)
    return process, LimitedCaller(process, judge.concurrency, judge.rpm, judge.tpm, purse)


def client_of(caller: Caller, judge: JudgeSettings | None, memory: Memory) -> JudgeClient:
    if judge is None:
        return JudgeClient(caller, memory)
    return JudgeClient(caller, memory, parameters=judge.answer_parameters, secrets=judge.secrets)

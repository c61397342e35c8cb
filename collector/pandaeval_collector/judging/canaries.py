"""Runs whose verdicts are known, judged at the start and from time to time, to notice when the judge changes.

What comes of it is a gauge and, when fewer verdicts than at first are as expected, a warning; never a score.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.evaluator import Evaluator, JudgeSettings
from pandaeval_collector.judge.call import Caller, CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge, NoVerdictError
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.judging.agreement import Agreement
from pandaeval_collector.judging.canary_file import Expected, Flock
from pandaeval_collector.judging.hiding import hider
from pandaeval_collector.metric import Texts, TraceContext, TraceMetric, registry
from pandaeval_collector.score import Finding, Score, Unscored, Why
from pandaeval_collector.store import Store
from pandaeval_collector.telemetry import Telemetry
from pandaeval_otel.model import Trace

_log = logging.getLogger(__name__)

CHECK = "canary"
FALL = 0.1
"""So much less agreement than at first is an alarm."""
_KEY = "judge.canaries"
_SECRET = b"canaries are nobody's secret, 32"
_SOON_S = 600.0
"""A round that the provider or the budget kept from saying anything is tried again after this."""


class _RunMemory:
    """Implements :class:`pandaeval_collector.judge.desk.Memory` for one round: extractions are shared within it."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def recall(self, key: str) -> bytes | None:
        return self._kept.get(key)

    async def keep(self, key: str, body: bytes) -> None:
        self._kept[key] = body


class Canaries:
    """The rounds of one collector. On one event loop."""

    def __init__(
        self,
        flock: Flock,
        store: Store,
        caller: Caller,
        evaluator: Evaluator,
        agreement: Agreement,
        telemetry: Telemetry,
        interval: float,
    ) -> None:
        self._metrics = registry(evaluator.settings.modules)
        judge = evaluator.settings.judge
        if judge is None:
            raise ValueError("canaries need a judge")
        self._flock, self._store, self._caller = flock, store, caller
        self._judge: JudgeSettings = judge
        self._hide = hider(judge)
        self._agreement, self._interval, self._of = agreement, interval, _compares_with(flock, judge, self._metrics)
        self._held: dict[str, Any] = json.loads(store.get(_KEY) or "{}")
        self._task: asyncio.Task[None] | None = None
        telemetry.gauge("pandaeval.judge.drift", lambda: self.drift, check=CHECK)

    @property
    def drift(self) -> float:
        """How much less the newest round agreed than the first one of the same canaries and judge; 0..1."""
        return max(0.0, float(self._held["first"]) - float(self._held["newest"])) if self._same() else 0.0

    def start(self) -> None:
        """Rounds at the start, unless the last one is not old enough, and whenever the interval has passed."""
        self._task = asyncio.create_task(self._rounds(), name="pandaeval-canaries")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _rounds(self) -> None:
        wait = self._held["at"] + self._interval - time.time() if self._same() else 0.0
        while True:
            await asyncio.sleep(max(0.0, min(wait, self._interval)))
            wait = self._interval
            try:
                if not await self.round():
                    wait = min(_SOON_S, self._interval)
            except Exception:  # noqa: BLE001 - a check of the judge must never harm the judging
                _log.exception("the judge's canaries could not be judged")

    async def round(self) -> int:
        """Judges all canaries once; the number of verdicts. What the provider or the budget kept from being judged
        counts neither way."""
        verdicts: dict[tuple[str, str], list[float]] = {}
        desk = Desk(self._caller, _RunMemory())
        for canary in self._flock.canaries:
            shown = canary.trace if self._hide is None else redacted(canary.trace, self._hide)
            packed = pack(shown, _SECRET)
            for key, expected in canary.expected.items():
                right = await self._right(desk, packed, shown, key, expected)
                if right is not None:
                    verdicts.setdefault((key, self._judge.model_of(key)), []).append(float(right))
        for (key, model), values in verdicts.items():
            await self._agreement.put(CHECK, key, model, values)
        found = [value for values in verdicts.values() for value in values]
        if found:
            await self._conclude(found)
        return len(found)

    async def _right(self, desk: Desk, packed: Pack, shown: Trace, key: str, expected: Expected) -> bool | None:
        metric: TraceMetric = self._metrics[key]
        try:
            finding = await _finding(metric, shown, Judge(desk, packed, self._judge.model_of(key), self._judge.secrets))
        except (CallFailedError, OverBudgetError) as error:
            _log.info("canary %s could not be judged for %s (%s)", shown.trace_id, key, error)
            return None
        if not _as_expected(finding, expected):
            _log.info("canary %s: %s is not as expected (%s): %s", shown.trace_id, key, expected, finding)
            return False
        return True

    async def _conclude(self, values: Sequence[float]) -> None:
        share = sum(values) / len(values)
        first = float(self._held["first"]) if self._same() else share
        self._held = {"of": self._of, "at": time.time(), "first": first, "newest": share, "n": len(values)}
        await asyncio.wrap_future(self._store.put(_KEY, json.dumps(self._held)))
        if first - share >= FALL:
            _log.warning(
                "the judge has changed: %.0f %% of %d verdicts on the canaries are as expected, at first %.0f %% were",
                100 * share,
                len(values),
                100 * first,
            )

    def _same(self) -> bool:
        """Whether the rounds before were of the same canaries, judge and questions."""
        return bool(self._held.get("of") == self._of)


def _compares_with(flock: Flock, judge: JudgeSettings, metrics: Mapping[str, TraceMetric]) -> str:
    keys = sorted({key for canary in flock.canaries for key in canary.expected})
    asked = [(key, judge.model_of(key), metrics[key].version) for key in keys]
    return hashlib.blake2b(json.dumps([flock.digest, PROMPT_VERSION, asked]).encode(), digest_size=8).hexdigest()


async def _finding(metric: TraceMetric, trace: Trace, judge: Judge) -> Finding | None:
    before = metric.evaluate(trace, TraceContext(Texts({}, (), "none", None), 0.5))
    if before is not None or metric.ask is None:
        return before
    try:
        return await metric.ask(trace, judge)
    except NoVerdictError as error:
        return Unscored(error.why, str(error))


def _as_expected(finding: Finding | None, expected: Expected) -> bool:
    if isinstance(expected, str):
        return isinstance(finding, Unscored) and finding.why is Why(expected)
    return isinstance(finding, Score) and expected[0] <= finding.value <= expected[1]

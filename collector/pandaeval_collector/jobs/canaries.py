"""Runs whose verdicts are known, judged at the start and from time to time, to notice when the judge changes.

What comes of it are gauges and, when verdicts are far from those of the first round, a warning; never a score.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.canary_file import Canary, Expected, Flock, as_expected, finding_of, said
from pandaeval_collector.jobs.job_traces import hider
from pandaeval_collector.jobs.setup import Desks
from pandaeval_collector.judge.call import Caller, CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.scoring.evaluator import Evaluator, JudgeSettings
from pandaeval_collector.scoring.metric import TraceMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store import Store
from pandaeval_otel.base.component_errors import ERRORS, METRIC
from pandaeval_otel.model import Trace

# The verdicts of the canaries' rounds, case by case: the first on each, the newest, and how far apart they are.
Said = float | str
"""A judge's verdict on a canary, 0..1, or why there is none."""
CaseKey = tuple[str, str, str]
"""Canary, metric, model."""
_KEEP = 30
"""Verdicts on one case that are kept: those of the newest rounds."""


@dataclass(slots=True)
class CanaryRecord:
    """The verdicts of one metric on a canary; ``right``: the newest is as expected; ``verdicts``: the newest few."""

    first: Said
    newest: Said
    right: bool
    verdicts: list[float] = field(default_factory=list)

    def hear(self, said: Said, right: bool) -> None:
        """Adds the verdict of one more round."""
        self.newest, self.right = said, right
        if isinstance(said, float):
            self.verdicts = [*self.verdicts, said][-_KEEP:]

    @property
    def shift(self) -> float:
        """The distance of the newest verdict from the first, 0..1; 1 if only one is a score or the reasons differ."""
        if isinstance(self.first, float) and isinstance(self.newest, float):
            return abs(self.newest - self.first)
        return float(self.first != self.newest)

    def changed(self, threshold: float) -> bool:
        """Returns whether first and newest verdict lie on two sides of the threshold, or only one is a score."""
        if isinstance(self.first, float) and isinstance(self.newest, float):
            return (self.first >= threshold) != (self.newest >= threshold)
        return self.first != self.newest

    def __str__(self) -> str:
        """Returns a text such as ``0.90 at first, 0.10 now (0.10-0.92 in 12 rounds)``."""
        shown = f"{_shown(self.first)} at first, {_shown(self.newest)} now"
        if len(self.verdicts) > 2:
            shown += f" ({min(self.verdicts):.2f}-{max(self.verdicts):.2f} in {len(self.verdicts)} rounds)"
        return shown


class CanaryRounds:
    """All rounds of the same canaries, judge and questions, whose digest is ``of``. ``at``: Unix time of the newest
    round, 0.0 before the first; ``thresholds``: by metric."""

    def __init__(self, of: str, thresholds: Mapping[str, float], held: Mapping[str, Any]) -> None:
        """``held``: an earlier :meth:`to_dict`, ignored if it is of other canaries, judges or questions."""
        self.of, self.at, self._thresholds = of, 0.0, thresholds
        self.cases: dict[CaseKey, CanaryRecord] = {}
        if held.get("of") == of:
            self.at = float(held["at"])
            for key, case in held["cases"].items():
                name, metric, model = key.split("\t")
                self.cases[name, metric, model] = CanaryRecord(**case)

    def hear(self, key: CaseKey, said: Said, right: bool) -> None:
        """Adds one verdict."""
        case = self.cases.setdefault(key, CanaryRecord(said, said, right))
        case.hear(said, right)

    def to_dict(self) -> dict[str, Any]:
        """Returns the rounds as the store keeps them."""
        cases = {
            "\t".join(key): {"first": c.first, "newest": c.newest, "right": c.right, "verdicts": c.verdicts}
            for key, c in self.cases.items()
        }
        return {"of": self.of, "at": self.at, "cases": cases}

    @property
    def drift(self) -> float:
        """The mean shift of all verdicts, 0..1; 0 before the second round."""
        return statistics.fmean(case.shift for case in self.cases.values()) if self.cases else 0.0

    @property
    def changed(self) -> int:
        """How many verdicts lie on the other side of their threshold than at first."""
        return sum(case.changed(self._thresholds[metric]) for (_, metric, _), case in self.cases.items())

    def right(self, metric: str, model: str) -> float:
        """Returns the share of this metric's and model's newest verdicts that are as expected."""
        return statistics.fmean(case.right for key, case in self.cases.items() if key[1:] == (metric, model))

    def series(self) -> Iterator[tuple[str, str]]:
        """Yields each pair of metric and model with a verdict."""
        yield from dict.fromkeys((metric, model) for _, metric, model in self.cases)

    def furthest(self, most: int = 3) -> list[str]:
        """Describes the verdicts with the largest shifts, at most ``most``."""
        moved = sorted(self.cases.items(), key=lambda each: -each[1].shift)
        return [f"{name}, {metric}: {case}" for (name, metric, _), case in moved[:most] if case.shift > 0.0]


def _shown(said: Said) -> str:
    return f"{said:.2f}" if isinstance(said, float) else said


_log = logging.getLogger(__name__)

CHECK = "canary"
FAR = 0.1
"""Verdicts that are so far from those of the first round, in the mean, are an alarm."""
_KEY = "judge.canaries"
_FORM = 2
"""The format of stored rounds; rounds in another format are ignored."""
_SECRET = b"canaries are nobody's secret, 32"
_SOON_S = 600.0
"""A round that the provider or the budget kept from saying anything is tried again after this."""
_MOST_SHOWN = 100
"""Cases with a gauge of their own."""


class _RunMemory:
    """Implements :class:`pandaeval_collector.judge.desk.Memory` for one round, whose questions share extractions."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def recall(self, key: str) -> bytes | None:
        return self._kept.get(key)

    async def keep(self, key: str, body: bytes) -> None:
        self._kept[key] = body


class Canaries:
    """Judges the canaries of one collector in rounds, and shows how far verdicts shift. On one event loop."""

    def __init__(
        self, flock: Flock, store: Store, caller: Caller, evaluator: Evaluator, telemetry: Telemetry, interval: float
    ) -> None:
        self._metrics = registry(evaluator.settings.modules)
        judge = evaluator.settings.judge
        if judge is None:
            raise ValueError("canaries need a judge")
        self._store, self._desks, self._telemetry, self._interval = store, Desks(caller, judge), telemetry, interval
        self._judge: JudgeSettings = judge
        self._hide, self._canaries = hider(judge), _named(flock)
        thresholds = {key: metric.threshold_for(None) for key, metric in self._metrics.items() if metric.kind == "llm"}
        thresholds |= evaluator.settings.thresholds
        of = _compares_with(flock, judge, self._metrics)
        self._rounds_so_far = CanaryRounds(of, thresholds, json.loads(store.reads.get(_KEY) or "{}"))
        self._shown: set[tuple[str, ...]] = set()
        self._task: asyncio.Task[None] | None = None
        telemetry.gauge("pandaeval.judge.drift", lambda: self.drift, check=CHECK)
        telemetry.gauge("pandaeval.judge.canaries.changed", lambda: self._rounds_so_far.changed)
        self._show()

    @property
    def drift(self) -> float:
        """The mean distance, 0..1, of the newest verdicts from those of the first round of the same canaries and
        judge."""
        return self._rounds_so_far.drift

    def start(self) -> None:
        """Starts to judge all canaries every interval; at once if the last round is an interval ago."""
        self._task = asyncio.create_task(self._rounds(), name="pandaeval-canaries")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _rounds(self) -> None:
        wait = self._rounds_so_far.at + self._interval - time.time()
        while True:
            await asyncio.sleep(max(0.0, min(wait, self._interval)))
            wait = self._interval
            try:
                if not await self.round():
                    wait = min(_SOON_S, self._interval)
            except Exception:  # noqa: BLE001 - a check of the judge must never harm the judging
                _log.exception("the judge's canaries could not be judged")

    async def round(self) -> int:
        """Judges all canaries once; returns the number of verdicts. Skips those that the provider or the budget
        prevents."""
        heard: list[tuple[CaseKey, Said, bool]] = []
        desk = self._desks.desk(_RunMemory())
        for name, canary in self._canaries.items():
            shown = canary.trace if self._hide is None else redacted(canary.trace, self._hide)
            packed = pack(shown, _SECRET)
            for key, expected in canary.expected.items():
                found = await self._verdict(desk, packed, shown, key, expected)
                if found is not None:
                    heard.append(((name, key, self._judge.model_of(key)), *found))
        if heard:
            await self._conclude(heard)
        return len(heard)

    async def _verdict(
        self, desk: Desk, packed: Pack, shown: Trace, key: str, expected: Expected
    ) -> tuple[Said, bool] | None:
        """Returns what the judge said and whether it is as expected; ``None`` if it could not be asked."""
        heeded = self._judge.guidance(self._metrics[key], shown.agent)
        judge = Judge(desk, packed, self._judge.model_of(key), self._judge.secrets, guidance=heeded)
        try:
            finding = await finding_of(self._metrics[key], shown, judge)
        except (CallFailedError, OverBudgetError) as error:
            _log.info("canary %s could not be judged for %s (%s)", shown.trace_id, key, error)
            return None
        except Exception as error:  # noqa: BLE001 - a metric's bug must cost its own verdicts, and no others
            ERRORS.note(METRIC, key, error)
            return None
        right = as_expected(finding, expected)
        if not right:
            _log.info("canary %s: %s is not as expected (%s): %s", shown.trace_id, key, expected, finding)
        match finding:
            case Score():
                return said(finding), right
            case Unscored():
                return finding.why.value, right
        return "not asked", right

    async def _conclude(self, heard: list[tuple[CaseKey, Said, bool]]) -> None:
        rounds = self._rounds_so_far
        for key, verdict, right in heard:
            rounds.hear(key, verdict, right)
        rounds.at = time.time()
        self._show()
        await asyncio.wrap_future(self._store.put(_KEY, json.dumps(rounds.to_dict())))
        if rounds.drift >= FAR:
            _log.warning(
                "the judge has changed: its verdicts on %d canaries are %.2f from those of the first round in the "
                "mean, and %d are on the other side of their threshold; furthest: %s",
                len(rounds.cases),
                rounds.drift,
                rounds.changed,
                "; ".join(rounds.furthest()),
            )

    def _show(self) -> None:
        """Registers gauges for the verdicts that have none yet."""
        rounds = self._rounds_so_far
        for metric, model in rounds.series():
            if (metric, model) not in self._shown:
                self._shown.add((metric, model))
                self._telemetry.gauge(
                    "pandaeval.judge.agreement",
                    lambda metric=metric, model=model: rounds.right(metric, model),  # type: ignore[misc]
                    check=CHECK,
                    metric=metric,
                    model=model,
                )
        for name, metric, model in list(rounds.cases)[:_MOST_SHOWN]:
            if (name, metric, model) not in self._shown:
                self._shown.add((name, metric, model))
                self._telemetry.gauge(
                    "pandaeval.judge.canary.score",
                    lambda key=(name, metric, model): _number(rounds.cases[key].newest),  # type: ignore[misc]
                    canary=name,
                    metric=metric,
                    model=model,
                )


def _number(verdict: Said) -> float:
    return verdict if isinstance(verdict, float) else math.nan


def _named(flock: Flock) -> dict[str, Canary]:
    """Returns the canaries by name; appends a number to a name that is taken."""
    found: dict[str, Canary] = {}
    for canary in flock.canaries:
        name, number = canary.name.replace("\t", " "), 1
        while name in found:
            number += 1
            name = f"{canary.name} ({number})"
        found[name] = canary
    return found


def _compares_with(flock: Flock, judge: JudgeSettings, metrics: Mapping[str, TraceMetric]) -> str:
    keys = sorted({key for canary in flock.canaries for key in canary.expected})
    asked = [(key, judge.model_of(key), metrics[key].version) for key in keys]
    about: list[object] = [_FORM, flock.digest, PROMPT_VERSION, asked]
    about += [asdict(each) for each in judge.guidelines if each.metric in keys]
    return hashlib.blake2b(json.dumps(about).encode(), digest_size=8).hexdigest()

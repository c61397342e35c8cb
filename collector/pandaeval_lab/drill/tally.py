"""Counts noticed copies per fault, metric and step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.stats.quantiles import normal_quantile, wilson
from pandaeval_collector.base.result import Result
from pandaeval_lab.drill.fault import Fault, Planted
from pandaeval_lab.passk.gate import p_value

LEVEL = 0.05
"""Probability that any comparison with an earlier drill reports a drop by chance."""


@dataclass(slots=True)
class NoticedShare:
    """A share of copies: ``hits`` of ``n``, with Wilson's 95 % interval."""

    hits: int = 0
    n: int = 0

    def count(self, is_hit: bool) -> None:
        self.hits += is_hit
        self.n += 1

    @property
    def value(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.hits / self.n, self.n, normal_quantile()) if self.n else None

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {"hits": self.hits, "n": self.n, "share": self.value, "low": low, "high": high}


class FaultTally:
    """Counts a fault's copies. ``refused``: reasons of inapplicable runs, counted.

    ``blamed``: of noticed copies, those in which a metric blames a touched span. ``could_not_tell``: copies that no
    metric fails, and that a metric which scored the original does not score.
    """

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.noticed, self.blamed, self.could_not_tell = NoticedShare(), NoticedShare(), NoticedShare()
        self.refused: Counter[str] = Counter()
        self.by_metric: Counter[str] = Counter()
        self.silent: Counter[str] = Counter()

    @property
    def n(self) -> int:
        return self.noticed.n

    def add(self, before: Sequence[Result], after: Sequence[Result], planted: Planted) -> None:
        """Count the results for an original and its copy. A metric that fails the original detects no fault."""
        failing = {result.metric for result in before if result.success is False}
        noticed: dict[str, bool] = {}
        """The metrics that fail the copy, and whether each metric blames a span that the fault touched."""
        for result in after:
            if result.success is False and result.metric not in failing:
                named = {*getattr(result.finding, "span_ids", ()), result.unit.span_id}
                noticed[result.metric] = noticed.get(result.metric, False) or bool(named & planted.span_ids)
        scored, sure = ({each.metric for each in results if each.outcome == "scored"} for results in (after, before))
        silent = sorted(sure - scored)
        self.noticed.count(bool(noticed))
        self.could_not_tell.count(not noticed and bool(silent))
        if noticed:
            self.blamed.count(any(noticed.values()))
        self.by_metric.update(noticed.keys())
        self.silent.update(silent)

    def to_dict(self) -> dict[str, Any]:
        return {
            "family": self.fault.family,
            "text": self.fault.text,
            "n": self.n,
            "noticed": self.noticed.to_dict(),
            "could_not_tell": self.could_not_tell.to_dict(),
            "blamed": self.blamed.to_dict(),
            "by_metric": {
                metric: NoticedShare(hits, self.n).to_dict() for metric, hits in self.by_metric.most_common()
            },
            "silent": dict(self.silent.most_common()),
            "not_applicable": dict(self.refused.most_common()),
        }


class Tally:
    """Counts faults, and results of untouched runs. ``runs``: number read. ``good``: number that looked good.

    ``flagged``: by metric, the share of scored untouched runs that it fails.
    """

    def __init__(self, faults: Mapping[str, Fault], runs: int, good: int) -> None:
        self.faults = {name: FaultTally(fault) for name, fault in faults.items()}
        self.runs, self.good = runs, good
        self.flagged: defaultdict[str, NoticedShare] = defaultdict(NoticedShare)

    def untouched(self, results: Iterable[Result]) -> None:
        failed: dict[str, bool] = {}
        for result in results:
            if result.outcome == "scored":
                failed[result.metric] = failed.get(result.metric, False) or result.success is False
        for metric, is_failed in failed.items():
            self.flagged[metric].count(is_failed)

    def worst_first(self) -> list[tuple[str, FaultTally]]:
        return sorted(self.faults.items(), key=lambda pair: (not pair[1].n, pair[1].noticed.value or 0.0, pair[0]))

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "good": self.good,
            "faults": {name: each.to_dict() for name, each in self.worst_first()},
            "untouched": {metric: share.to_dict() for metric, share in sorted(self.flagged.items())},
        }


@dataclass(frozen=True, slots=True)
class NoticedLess:
    """A metric that noticed more copies in the earlier drill."""

    fault: str
    metric: str
    before: NoticedShare
    now: NoticedShare

    @property
    def p(self) -> float:
        """The one-sided p-value of so few detections under no change."""
        return p_value([((self.before.n, self.before.hits), (self.now.n, self.now.hits))])

    @property
    def text(self) -> str:
        return (
            f"{self.metric} noticed {self.before.hits} of {self.before.n} copies of {self.fault}, "
            f"now {self.now.hits} of {self.now.n}"
        )


def drops(before: Mapping[str, Any], now: Tally) -> list[NoticedLess]:
    """Find credible drops since an earlier :meth:`Tally.to_dict`, by exact tests that share :data:`LEVEL`.

    Raises ``KeyError`` and ``TypeError`` for other objects.
    """
    pairs = [
        NoticedLess(
            name, metric, NoticedShare(share["hits"], share["n"]), NoticedShare(found.by_metric[metric], found.n)
        )
        for name, fault in before["faults"].items()
        if (found := now.faults.get(name)) is not None and found.n
        for metric, share in fault["by_metric"].items()
        if share["n"]
    ]
    return [pair for pair in pairs if pair.p <= LEVEL / len(pairs)]

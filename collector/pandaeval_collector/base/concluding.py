"""Makes the results of a unit from what its metrics found, all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pandaeval_collector.base.result import (
    MAX_REASON_CHARS,
    EvaluatorInfo,
    Identity,
    Result,
    Unit,
    cut,
    encoded_unit,
    now,
)
from pandaeval_collector.base.score import Finding
from pandaeval_collector.base.untrusted.details import bounded


@dataclass(frozen=True, slots=True)
class Origin:
    """What all results of a metric share. ``threshold``: ``None`` for a metric that explains a failure."""

    metric: str
    identity: Identity
    evaluator: EvaluatorInfo
    threshold: float | None


def keep_little(finding: Finding) -> None:
    """Cuts a finding to what is kept of it in memory until its batch is committed, which has thousands of findings."""
    finding.reason, finding.metadata = cut(finding.reason, MAX_REASON_CHARS), bounded(finding.metadata)


def conclude(unit: Unit, found: Iterable[tuple[Origin, Finding, float]]) -> list[Result]:
    """Makes a result of each finding about ``unit``, with the milliseconds that it took."""
    time, encoded = now(), encoded_unit(unit)
    return [
        Result(
            id=origin.identity.of_encoded(*encoded),
            metric=origin.metric,
            unit=unit,
            finding=finding,
            evaluator=origin.evaluator,
            threshold=origin.threshold,
            revision=unit.revision,
            final=True,
            duration_ms=round(took_ms, 3),
            time=time,
        )
        for origin, finding, took_ms in found
    ]

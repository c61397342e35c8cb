"""The verdict on a model, for people and for programs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pandaeval_collector.jobs.check.plan import METRIC, known_runs
from pandaeval_collector.jobs.check.probes import Probe, probes, verdicts
from pandaeval_collector.jobs.check.questions import Reply
from pandaeval_collector.judge.desk import AnswerCost
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.scoring.registry import registry

MOST_FAILED = 0.1
"""Of more questions that could not be put than this share, nothing is concluded."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """``asked``: of ``planned`` questions; ``failed``: that could not be put. ``runs``: expected band and verdicts of
    each known run."""

    model: str
    planned: int
    asked: int
    failed: int
    probes: Sequence[Probe]
    runs: Mapping[str, tuple[tuple[float, float], list[float]]]
    spent: AnswerCost

    @property
    def complete(self) -> bool:
        return self.asked == self.planned and self.failed <= MOST_FAILED * self.planned

    @property
    def trusted(self) -> bool:
        return self.complete and all(probe.passed for probe in self.probes)

    def last_line(self) -> str:
        """What people should take home."""
        failed = [probe.name for probe in self.probes if not probe.passed]
        if not self.complete:
            return (
                f"{self.model}: NOT CONCLUDED, {self.asked} of {self.planned} questions were put and {self.failed} "
                "failed"
            )
        if failed:
            return f"{self.model}: FAILED on {', '.join(failed)}"
        return f"{self.model}: passed all {len(self.probes)} probes"

    def to_dict(self) -> dict[str, Any]:
        """Returns the sheet as a JSON object; what could not be measured is null."""
        return {
            "model": self.model,
            "metric": METRIC,
            "metric_version": registry()[METRIC].version,
            "prompt_version": PROMPT_VERSION,
            "passed": self.trusted,
            "complete": self.complete,
            "questions": {"planned": self.planned, "asked": self.asked, "failed": self.failed},
            "calls": self.spent.calls,
            "tokens": self.spent.tokens,
            "cost_usd": self.spent.cost_usd,
            "probes": [{name: _plain(value) for name, value in asdict(probe).items()} for probe in self.probes],
            "runs": [
                {
                    "name": name,
                    "expected": list(band),
                    "verdicts": said,
                    "mean": statistics.fmean(said) if said else None,
                }
                for name, (band, said) in self.runs.items()
            ],
        }


def sheet(model: str, planned: int, replies: Sequence[Reply], spent: AnswerCost) -> Sheet:
    """The sheet of what was answered so far."""
    said = verdicts(replies)
    runs = {run.name: (run.band, said.get(run.name, [])) for run in known_runs()}
    failed = sum(bool(reply.failed) for reply in replies)
    return Sheet(model, planned, len(replies), failed, probes(replies), runs, spent)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value

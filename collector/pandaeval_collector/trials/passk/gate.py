"""The regression gate: trials of now against those of a baseline, over the same cases.

It fails for one of four reasons: the drop is larger than chance explains; it is larger than was allowed; a case of kind
``regression`` that passed all trials of the baseline fails all of now, whatever its significance; or too little of the
baseline could be compared: too many of its cases, or of the trials of now at its cases, tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pandaeval_collector.analysis.stats.drop import Drop, drop
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.trials.passk.attempts import CaseOutcomes, CaseTrials

LEVEL = 0.05
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """``level``: the share of false alarms, 0..1, by which a drop is credible. ``max_drop``: the largest mean drop
    (0..1) that passes even so; ``None``: any that is not credible. ``max_missing``: largest share of the baseline's
    cases, 0..1, that may have no determined trial now, and of the trials now at its other cases that may be
    undetermined."""

    level: float = LEVEL
    max_drop: float | None = None
    max_missing: float = 0.2


@dataclass(slots=True)
class GateVerdict:
    """What came of it. ``broken``: regression cases that passed all and fail all now; ``missing``: cases of the
    baseline without a determined trial now; ``new``: those of now that the baseline does not know; ``undetermined`` of
    ``tried``: trials of now at the compared cases. ``failures``: a sentence for each reason why it does not pass."""

    metric: str
    drop: Drop | None
    broken: list[str]
    missing: list[str]
    new: list[str]
    undetermined: int = 0
    tried: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def told(self) -> str:
        """The effect in a sentence."""
        if self.drop is None:
            return "no case has a determined trial in both"
        found = self.drop.difference
        between = f" (95 % interval {found.low:+.3f} to {found.high:+.3f})" if found.low is not None else ""
        informed = f"{self.drop.informative} of {found.n} cases had both successes and failures"
        return f"{self.metric} against the baseline: {found.mean:+.3f}{between}, p = {self.drop.p:.4f}; {informed}"


def compared(before: CaseTrials, now: CaseTrials, rules: Rules) -> GateVerdict:
    """Holds trials against a baseline's. Raises ``UserError`` where the two were counted by different metrics."""
    if (before.metric, before.per) != (now.metric, now.per):
        raise UserError(f"the baseline counts {before.metric} by {before.per}, this {now.metric} by {now.per}")
    past, present = ({case.id: case for case in each.cases if case.n} for each in (before, now))
    both = [(past[name], present[name]) for name in sorted(past.keys() & present.keys())]
    verdict = GateVerdict(
        now.metric,
        drop([(old.n, old.c) for old, _ in both], [(new.n, new.c) for _, new in both]),
        [new.id for old, new in both if _broke(old, new)],
        sorted(past.keys() - present.keys()),
        sorted(present.keys() - past.keys()),
        sum(new.undetermined for _, new in both),
        sum(len(new.trials) for _, new in both),
    )
    verdict.failures = list(_failures(verdict, rules, len(past)))
    return verdict


def _broke(old: CaseOutcomes, new: CaseOutcomes) -> bool:
    return "regression" in (old.kind, new.kind) and old.c == old.n and new.c == 0


def _failures(verdict: GateVerdict, rules: Rules, cases: int) -> Iterator[str]:
    if verdict.broken:
        yield f"passed every trial of the baseline and fails every one now: {_named(verdict.broken)}"
    found = verdict.drop
    if found is None:
        yield "nothing can be compared: no case has a determined trial in both"
        return
    mean = found.difference.mean
    if mean < 0.0 and found.p <= rules.level:
        yield f"the drop of {-mean:.3f} is more than chance explains (p = {found.p:.4f}, level {rules.level:g})"
    if rules.max_drop is not None and -mean > rules.max_drop + 1e-9:
        yield f"the drop of {-mean:.3f} is larger than {rules.max_drop:g} (gates.baseline.max_drop)"
    if len(verdict.missing) > rules.max_missing * cases:
        lost = _named(verdict.missing)
        yield f"{len(verdict.missing)} of {cases} cases of the baseline have no determined trial now: {lost}"
    if verdict.undetermined > rules.max_missing * verdict.tried:
        untold = f"{verdict.undetermined} of {verdict.tried} trials at the compared cases"
        yield f"{untold} could not be graded, more than gates.max_unscored allows: whatever they hide is in no rate"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more

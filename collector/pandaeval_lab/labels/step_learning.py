"""Learns which step breaks a run, from labels of steps: one model for each agent, kept beside its problem score.

The model is the problem score's: a logistic regression, here over all steps of the labelled runs. Among the steps of a
run, one of which is the wrong one, the odds are in proportion to ``exp(score)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path

import numpy as np

from pandaeval_collector.analysis.rules.run_steps import step_rows, steps_of
from pandaeval_collector.analysis.stats.learned import STEP, ProblemModel, Row
from pandaeval_collector.base.errors import UserError
from pandaeval_lab.labels.files import rows_of
from pandaeval_lab.labels.learning import PEOPLE, LabelledAgent, fitted
from pandaeval_otel.model import Trace

LEAST_STEPS = 10
"""The least number of labelled runs for a model."""
_FOLDS = 10


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """The features of a run's steps, in order, and the index of the first wrong one."""

    rows: Sequence[Row]
    wrong: int

    def place(self, model: ProblemModel) -> int:
        """Returns how many steps the model names before the wrong one."""
        shares = model.shares(self.rows)
        return sorted(range(len(shares)), key=lambda at: -shares[at]).index(self.wrong)


@dataclass(slots=True)
class LabelledSteps(LabelledAgent):
    """Runs of which people named the first wrong step."""

    runs: list[LabelledRun] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StepFigures:
    """How often a model names the wrong step of runs that it had not seen: first (``first``) and among the first three
    (``of_three``), as shares of 0..1, beside a step at random and the last step of each run. ``gain``: mean logarithm
    of how much likelier than a step at random the wrong one is by the model."""

    labels: int
    first: float | None = None
    of_three: float | None = None
    chance_first: float = 0.0
    chance_of_three: float = 0.0
    last_step: float = 0.0
    gain: float = 0.0

    @property
    def refusal(self) -> str:
        """Why no model should be used; ``""`` where one should."""
        if self.first is None:
            return f"{self.labels} labels of steps: it takes {LEAST_STEPS}"
        if self.gain <= 0.0 or self.first <= max(self.chance_first, self.last_step):
            return (
                f"nothing certain is learned: the right step is named in {self.first:.2f} of unseen runs, by chance in "
                f"{self.chance_first:.2f}, and as the last step in {self.last_step:.2f}: label more runs"
            )
        return ""


def read_steps(path: Path) -> dict[str, set[str]]:
    """Reads a file of labels of steps, CSV or JSON lines with ``trace_id`` and ``span_id``: the wrong steps by trace.
    Raises ``UserError`` for a file that cannot be read, or a row without both."""
    found: dict[str, set[str]] = {}
    for line, row in rows_of(path, (("trace_id",), ("span_id",))):
        ids = (
            [] if isinstance(row, str) else [str(row.get(key) or "").strip().lower() for key in ("trace_id", "span_id")]
        )
        if not all(ids):
            raise UserError(f"{path}, line {line}: {row if isinstance(row, str) else 'trace_id or span_id misses'}")
        found.setdefault(ids[0], set()).add(ids[1])
    return found


def labelled_steps(traces: Iterable[Trace], wrong: Mapping[str, set[str]]) -> list[LabelledSteps]:
    """Gathers the runs with a label, by agent. Of several wrong steps of a run the first counts; a run of whose steps
    none is labelled is left out. ``wrong``: ids of spans, by trace."""
    found: dict[str, LabelledSteps] = {}
    for trace in traces:
        steps = steps_of(trace) if trace.trace_id in wrong else []
        first = next((at for at, step in enumerate(steps) if step.span_id in wrong[trace.trace_id]), None)
        if first is not None:
            its = found.setdefault(trace.agent, LabelledSteps(STEP, trace.agent, PEOPLE, "trace.blame"))
            its.runs.append(LabelledRun(step_rows(trace, steps), first))
    return [found[agent] for agent in sorted(found)]


def fitted_on(runs: Sequence[LabelledRun]) -> ProblemModel:
    """Fits a model on the steps of all runs."""
    rows = [row for run in runs for row in run.rows]
    wrong = [float(at == run.wrong) for run in runs for at in range(len(run.rows))]
    groups = [str(number) for number, run in enumerate(runs) for _ in run.rows]
    return fitted(rows, np.asarray(wrong), groups, 0)


def learn_steps(labelled: LabelledSteps) -> tuple[ProblemModel | None, StepFigures]:
    """Fits a model to all runs, and measures such a model on runs that it has not seen, by cross-validation; no model
    where :attr:`StepFigures.refusal` says why."""
    runs = labelled.runs
    if len(runs) < LEAST_STEPS:
        return None, StepFigures(len(runs))
    places, gain = [], 0.0
    for fold in range(_FOLDS):
        model = fitted_on([run for at, run in enumerate(runs) if at % _FOLDS != fold])
        places += [run.place(model) for run in runs[fold::_FOLDS]]
        gain += sum(log(model.shares(run.rows)[run.wrong] * len(run.rows)) for run in runs[fold::_FOLDS])

    def share(holds: Iterable[float]) -> float:
        return sum(holds) / len(runs)

    figures = StepFigures(
        labels=len(runs),
        first=share(at == 0 for at in places),
        of_three=share(at < 3 for at in places),
        chance_first=share(1 / len(run.rows) for run in runs),
        chance_of_three=share(min(3, len(run.rows)) / len(run.rows) for run in runs),
        last_step=share(run.wrong + 1 == len(run.rows) for run in runs),
        gain=gain / len(runs),
    )
    return (None if figures.refusal else fitted_on(runs)), figures

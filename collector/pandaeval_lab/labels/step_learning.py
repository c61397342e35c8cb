"""Learns which step breaks a run, from labels of steps. The model is the problem score's, a logistic regression, over
the steps of all labelled runs; among the steps of one run, of which one is the wrong one, the odds are in proportion to
``exp(score)``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np

from pandaeval_collector.analysis.rules.response_recovery import steps_of
from pandaeval_collector.analysis.rules.step_features import step_rows
from pandaeval_collector.analysis.stats.learned import STEP, ProblemModel
from pandaeval_collector.base.errors import UserError
from pandaeval_lab.labels.files import rows_of
from pandaeval_lab.labels.learning import PEOPLE, LabelledRuns, fitted
from pandaeval_otel.model import Trace

LEAST_STEPS = 10
"""The least number of labelled runs for a model."""
_FOLDS = 10


@dataclass(frozen=True, slots=True)
class StepFigures:
    """How often a model names the wrong step of runs that it had not seen: first (``first``) and among the first three
    (``of_three``), as shares of 0..1, beside a step at random and the last step of each run. ``gain``: mean logarithm
    of how much likelier than a step at random the wrong one is by the model."""

    labels: int
    first: float = 0.0
    of_three: float = 0.0
    chance_first: float = 0.0
    chance_of_three: float = 0.0
    last_step: float = 0.0
    gain: float = 0.0

    def __str__(self) -> str:
        first = f"{self.first:.2f} (at random {self.chance_first:.2f}, the last step {self.last_step:.2f})"
        three = f"{self.of_three:.2f} (at random {self.chance_of_three:.2f})"
        return f"of {self.labels} runs, each unseen, the wrong step is named in {first}, among three in {three}"

    @property
    def refusal(self) -> str:
        """Why no model should be used; ``""`` where one should."""
        if self.labels < LEAST_STEPS:
            return f"{self.labels} labels of steps: it takes {LEAST_STEPS}"
        if self.gain <= 0.0 or self.first <= max(self.chance_first, self.last_step):
            return f"nothing certain is learned: {self}: label more runs"
        return ""


def read_steps(path: Path) -> dict[str, set[str]]:
    """Reads a file of labels of steps, CSV or JSON lines with ``trace_id`` and ``span_id``: the wrong steps by trace.
    Raises ``UserError`` for a file that cannot be read, or a row without both."""
    found: dict[str, set[str]] = {}
    for line, row in rows_of(path, (("trace_id",), ("span_id",))):
        told = {} if isinstance(row, str) else row
        trace_id, span_id = (str(told.get(key) or "").lower() for key in ("trace_id", "span_id"))
        if not (trace_id and span_id):
            raise UserError(f"{path}, line {line}: {row if isinstance(row, str) else 'trace_id or span_id is missing'}")
        found.setdefault(trace_id, set()).add(span_id)
    return found


def labelled_steps(traces: Iterable[Trace], wrong: Mapping[str, set[str]]) -> list[LabelledRuns]:
    """Gathers the steps of the runs with a label, by agent; a group is a run, and ``bad`` its first wrong step. Leaves
    out a run of whose steps none is labelled. ``wrong``: ids of spans, by trace."""
    found: dict[str, LabelledRuns] = {}
    for trace in traces:
        steps = steps_of(trace) if trace.trace_id in wrong else []
        first = next((at for at, step in enumerate(steps) if step.span_id in wrong[trace.trace_id]), None)
        if first is not None:
            its = found.setdefault(trace.agent, LabelledRuns(STEP, trace.agent, PEOPLE, "trace.blame"))
            its.rows += step_rows(trace, steps)
            its.bad += [at == first for at in range(len(steps))]
            its.groups += [trace.trace_id] * len(steps)
    return [found[agent] for agent in sorted(found)]


def fitted_on(labelled: LabelledRuns, runs: Collection[str]) -> ProblemModel:
    """Fits a model on the steps of these runs."""
    at = [at for at, run in enumerate(labelled.groups) if run in runs]
    wrong = np.asarray([float(labelled.bad[each]) for each in at])
    return fitted([labelled.rows[each] for each in at], wrong, [labelled.groups[each] for each in at], 0)


def shares_of(labelled: LabelledRuns, run: str, model: ProblemModel) -> tuple[list[float], int]:
    """Returns how likely a model holds each step of a run to be the wrong one, and the index of the one that is."""
    at = [at for at, group in enumerate(labelled.groups) if group == run]
    return model.shares([labelled.rows[each] for each in at]), [labelled.bad[each] for each in at].index(True)


def learn_steps(labelled: LabelledRuns) -> tuple[ProblemModel | None, StepFigures]:
    """Fits a model to all runs, and measures such a model on runs that it has not seen, by cross-validation; no model
    where :attr:`StepFigures.refusal` says why."""
    runs = [*dict.fromkeys(labelled.groups)]
    if len(runs) < LEAST_STEPS:
        return None, StepFigures(len(runs))
    rows = []
    for fold in range(_FOLDS):
        held = {*runs[fold::_FOLDS]}
        model = fitted_on(labelled, {*runs} - held)
        for run in held:
            shares, wrong = shares_of(labelled, run, model)
            place, n = sum(each > shares[wrong] for each in shares), len(shares)
            rows.append((place == 0, place < 3, 1 / n, min(3, n) / n, wrong == n - 1, log(shares[wrong] * n)))
    figures = StepFigures(len(runs), *(float(np.mean(column)) for column in zip(*rows, strict=True)))
    return (None if figures.refusal else fitted_on(labelled, runs)), figures

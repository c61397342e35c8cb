"""Grades live traces that are trials of a case by themselves (``cases.path``).

Only code grades here, and each trace by itself. What a judge decides is left to `evaluate --cases`, and
``trial_correct`` then says that it cannot be told; so is a conversation of which a trace holds only a part: nothing is
said of it here, since it would fail for what is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pandaeval_collector.cases.matching import Trials
from pandaeval_collector.cases.reading import read_suite
from pandaeval_collector.cases.trial import Trial
from pandaeval_collector.evaluator import Evaluator
from pandaeval_collector.evaluator.trials import TrialGrader
from pandaeval_collector.result import Result
from pandaeval_otel.model import Trace


class LiveTrials:
    """The cases of a running collector. One thread."""

    def __init__(self, evaluator: Evaluator, path: Path) -> None:
        """Raises ``UserError`` for a file that cannot be used."""
        suite = read_suite(path, evaluator.settings.modules)
        self._grader, self._trials = TrialGrader(evaluator, suite), Trials(suite)

    def of(self, trace: Trace) -> Sequence[Result]:
        """The results of a trace as a trial; none for one of no case, for a part of a conversation, and for a step that
        is a trace of its own."""
        found = None if trace.is_step else self._trials.case_of(trace)
        if found is None or len(found[0].interactions) > max(1, len(trace.turns)):
            return ()
        return self._grader.results(Trial(found[0], found[1], (trace,)))


def live_trials(evaluator: Evaluator) -> LiveTrials | None:
    """Those that are configured."""
    path = evaluator.settings.cases
    return None if path is None else LiveTrials(evaluator, Path(path))

"""Cases in a running collector (``cases.path``): which traces are parts of trials, and what a trial of one is worth.

Only code grades here: what a judge decides is left to `evaluate --cases`, and ``trial_correct`` then says that it
cannot be told. A trace without a session is a trial by itself, and graded with its other results. The traces of a
session are graded when that is over (``line/session_trials.py``): a part of a trial fails for what is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.untrusted.stated import stated
from pandaeval_collector.pipeline.line.facts import TrialFacts
from pandaeval_collector.scoring.cases.files import read_suite
from pandaeval_collector.scoring.cases.matching import TrialMatcher
from pandaeval_collector.scoring.cases.model import Case
from pandaeval_collector.scoring.cases.trial import Trial
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.grading import TrialGrader
from pandaeval_collector.scoring.evaluator.one_metric import trace_unit
from pandaeval_otel.base import semconv
from pandaeval_otel.model import Trace


class LiveGrading:
    """The cases of a running collector. One thread."""

    def __init__(self, evaluator: Evaluator, path: Path) -> None:
        """Reads the cases from ``path``. Raises ``UserError`` for a file that cannot be used."""
        suite = read_suite(path, evaluator.settings.modules)
        self.grader, self._trials = TrialGrader(evaluator, suite), TrialMatcher(suite)

    def case(self, id_: str) -> Case | None:
        """Returns the case of an id; ``None`` for an unknown one."""
        return self._trials.case(id_)

    def facts(self, trace: Trace) -> TrialFacts:
        """Returns what a trace leaves behind for the trial that it may be a part of."""
        case, is_named = self._trials.named(trace)
        if not is_named:
            case = self._trials.by_task(trace)
        return {
            "case": "" if case is None else case.id,
            "trial": stated(trace, semconv.PANDAEVAL_TRIAL)[0],
            "by_task": not is_named,
            "trigger": trace.trigger.value,
            "late_spans": trace.late_spans,
        }

    def alone(self, trace: Trace, facts: TrialFacts) -> Sequence[Result]:
        """Grades a trace as a trial by itself. No results for a trace of no case, of a session, or of a single step."""
        case = self.case(facts["case"])
        if case is None or trace.is_step or trace.session_id is not None:
            return ()
        name, turns = facts["trial"] or trace.trace_id, max(1, len(trace.turns))
        if len(case.interactions) > turns:
            why = (
                f"the trace holds {turns} of {len(case.interactions)} interactions and names no session, by which the "
                "others would be found (using_session)"
            )
            return self.grader.untold(case, name, trace_unit(trace), [trace.trace_id], why)
        return self.grader.results(Trial(case, name, (trace,)))


def live_trials(evaluator: Evaluator) -> LiveGrading | None:
    """Returns the grading by the configured cases; ``None`` where no cases are configured."""
    path = evaluator.settings.cases
    return None if path is None else LiveGrading(evaluator, Path(path))

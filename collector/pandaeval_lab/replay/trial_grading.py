"""Grades the trials among the traces of files, after these are scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.pipeline.line.understanding import with_session
from pandaeval_lab.cases.graders import CORRECT
from pandaeval_lab.cases.grading import TrialGrader, TrialVerdict
from pandaeval_lab.cases.matching import TrialMatcher, TrialTrace
from pandaeval_lab.cases.trial import Trial
from pandaeval_lab.passk.attempts import slim
from pandaeval_lab.passk.figures import repeated
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.replay.trial_judge import judged
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing

if TYPE_CHECKING:
    from pandaeval_collector.runs.replay_judge import ReplayJudge


def graded(
    files: TraceFiles,
    grader: TrialGrader,
    matcher: TrialMatcher,
    judge: ReplayJudge | None = None,
    ks: Sequence[int] = (),
) -> Iterator[Result]:
    """Yields the results of all trials that ``matcher`` gathered from scored traces: a trial may get another trace up
    to the end of the input. Reads the traces of a trial, or of a few, again. ``ks``: for which k cases with as many
    trials get pass@k and pass^k."""
    attempts = matcher.attempts()
    trials = (Trial(each.case, each.name, tuple(_read_again(files, kept) for kept in each.traces)) for each in attempts)
    verdicts_of: Iterator[tuple[Trial, Mapping[str, TrialVerdict]]] = ((trial, {}) for trial in trials)
    if judge is not None and attempts:
        verdicts_of = judged(judge, grader, judge.settings, trials, len(attempts))
    correct: list[Mapping[str, Any]] = []
    for trial, verdicts in verdicts_of:
        for result in grader.results(trial, verdicts):
            if result.metric == CORRECT:
                correct.append(slim(result.to_dict()))
            yield result
    yield from repeated(correct, ks)


def _read_again(files: TraceFiles, kept: TrialTrace) -> Trace:
    """Reads a trace as it was when it was scored, in the session that it was placed in."""
    trace = rebuilt(files.contents(kept.trace_id), Closing(kept.trigger)).trace
    assert trace is not None
    return trace if kept.session_id in (None, trace.session_id) else with_session(trace, kept.session_id)

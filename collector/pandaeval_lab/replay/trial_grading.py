"""Grades trials after their traces are scored."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Finding, Unscored, Why
from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.jobs.outcome import unanswered
from pandaeval_collector.jobs.redaction import hider
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.judge.client import AnswerCost, Judge, JudgeClient
from pandaeval_collector.judge.context import lines_of
from pandaeval_collector.judge.known_models import USUAL_RECORD
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.redact import Hide, redacted
from pandaeval_collector.scoring.evaluator.judged import provenance
from pandaeval_collector.scoring.metric import JudgedTrialMetric
from pandaeval_lab.cases.graders import CORRECT
from pandaeval_lab.cases.grading import TrialGrader, TrialVerdict
from pandaeval_lab.cases.trial import Trial, TrialMatcher, TrialTrace
from pandaeval_lab.passk.attempts import slim
from pandaeval_lab.passk.figures import repeated
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import batches
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing

_TRIES, _WAIT_S = 3, 1.0
_AT_A_TIME = 64
"""Maximum trials judged at the same time, within the judge's limits."""


class TrialJudge:
    """Calls judged graders for trials, on an event loop. ``hide``: redacts texts."""

    def __init__(self, grader: TrialGrader, client: JudgeClient, hide: Hide | None) -> None:
        self._grader, self._client, self._hide = grader, client, hide
        self._secret = secrets.token_bytes(32)

    async def verdicts(self, trial: Trial) -> dict[str, TrialVerdict]:
        shown = trial
        if (hide := self._hide) is not None:
            shown = replace(trial, traces=tuple(redacted(each, hide) for each in trial.traces))
        found = {metric.name: await self._verdict(metric, trial, shown) for metric in self._grader.judged}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    async def _verdict(self, metric: JudgedTrialMetric, trial: Trial, shown: Trial) -> TrialVerdict | None:
        model = self._grader.model_of(metric)
        known = self._grader.before_asking(metric, trial)
        if known is not None:
            return TrialVerdict(known, AnswerCost(model=model))
        earlier = [line for trace in shown.traces[:-1] for line in lines_of(trace)]
        packed = pack(shown.last, self._secret, USUAL_RECORD, earlier)
        judge = Judge(self._client, packed, model)
        finding = await self._asked(metric, shown, judge)
        if finding is None:
            return None
        spent = replace(judge.spent, model=judge.spent.model or model)
        whole = replace(finding, metadata={**finding.metadata, **provenance(finding, spent, model)})
        return TrialVerdict(whole, spent)

    async def _asked(self, metric: JudgedTrialMetric, shown: Trial, judge: Judge) -> Finding | None:
        for left in range(_TRIES - 1, -1, -1):
            try:
                return await metric.ask(shown, judge)
            except CallFailedError as error:
                if not left:
                    return Unscored(Why.JUDGE_FAILED, f"the judge could not be reached: {told(error)}")
                await asyncio.sleep(_WAIT_S)
            except Exception as error:  # noqa: BLE001 - a metric's bug affects one result, not the run
                return unanswered(error, metric.key)
        raise AssertionError("the last try returns")


def judged(
    judge: ReplayJudge, grader: TrialGrader, trials: Iterable[Trial], total: int
) -> Iterator[tuple[Trial, Mapping[str, TrialVerdict]]]:
    """Yield each trial with its verdicts."""
    asked, numbers = TrialJudge(grader, judge.client(), hider(judge.settings)), itertools.count(1)

    async def verdicts(trial: Trial) -> tuple[Trial, Mapping[str, TrialVerdict]]:
        found = await asked.verdicts(trial)
        judge.on_judged(next(numbers), total)
        return trial, found

    async def of_all(trials: Sequence[Trial]) -> list[tuple[Trial, Mapping[str, TrialVerdict]]]:
        return await asyncio.gather(*map(verdicts, trials))

    for few in batches(trials, _AT_A_TIME):
        yield from judge.run(of_all(few))


def graded(
    files: TraceFiles,
    grader: TrialGrader,
    matcher: TrialMatcher,
    judge: ReplayJudge | None = None,
) -> Iterator[Result]:
    """Yield the results of all trials in ``matcher``, whose traces are read again."""

    def read_again(kept: TrialTrace) -> Trace:
        return files.trace(kept.trace_id, kept.session_id, Closing(kept.trigger))

    attempts = matcher.attempts()
    trials = (Trial(each.case, each.name, tuple(map(read_again, each.traces))) for each in attempts)
    verdicts_of: Iterator[tuple[Trial, Mapping[str, TrialVerdict]]] = ((trial, {}) for trial in trials)
    if judge is not None and attempts:
        verdicts_of = judged(judge, grader, trials, len(attempts))
    correct: list[Mapping[str, Any]] = []
    for trial, verdicts in verdicts_of:
        for result in grader.results(trial, verdicts):
            if result.metric == CORRECT:
                correct.append(slim(result.to_dict()))
            yield result
    yield from repeated(correct)

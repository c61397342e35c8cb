"""Attempts at judge jobs: load the trace, call the judge, return the result to the worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pandaeval_collector.base.isolated import Isolated
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Finding, Unscored, Why
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.untrusted.foreign import explained
from pandaeval_collector.jobs.format_pauses import FormatPauses, cause
from pandaeval_collector.jobs.job_traces import GoneError, JobTrace, JobTraceLoader, fence_secret
from pandaeval_collector.jobs.outcome import (
    FailureWarnings,
    GivenUp,
    Later,
    Patience,
    Pauses,
    RecordBudgets,
    after_failure,
    unanswered,
)
from pandaeval_collector.jobs.redaction import hider
from pandaeval_collector.jobs.same_cause import RUBRIC as SAME_CAUSE, SameCause, judged_group
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.judge.known_models import USUAL_RECORD
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.redact import redact
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.pipeline.line.decision import Judgement
from pandaeval_collector.pipeline.line.session_scores import SessionScores
from pandaeval_collector.pipeline.line.understanding import DETAIL, SESSION
from pandaeval_collector.scoring.evaluator import Evaluator, Question
from pandaeval_collector.scoring.evaluator.judged import without_verdict
from pandaeval_collector.store import Job, JobEnd, StoreAccess
from pandaeval_collector.store.failures import failure_of
from pandaeval_collector.store.live_groups import LiveGroups
from pandaeval_otel.model import Trace, Trigger

_log = logging.getLogger(__name__)

_WAITED = Unscored(
    Why.OVER_BUDGET,
    "the judge was too slow, so the spans were deleted first; lower judge.sample, or raise its limits (judge.rpm, "
    "judge.tpm, judge.concurrency, judge.daily_usd)",
)


Filing = Callable[..., Awaitable[None]]
"""Files the judge's answers, and returns after the commit. Takes the name of the line's method, ``judged``, and its
arguments."""


@dataclass(slots=True)
class _Ends:
    running: int = 0
    ended: list[tuple[Job, Judgement]] = field(default_factory=list)
    replies: dict[str, bool] = field(default_factory=dict)
    """Whether any reply of a model was valid, by model."""


class Attempts:
    def __init__(
        self,
        store: StoreAccess,
        scores: SessionScores,
        evaluator: Evaluator,
        client: JudgeClient,
        filing: Filing,
        telemetry: Telemetry,
        patience: Patience | None = None,
        budgets: RecordBudgets | None = None,
        failures: LiveGroups | None = None,
    ) -> None:
        """Set up the attempts. ``filing``: receives answers. ``failures``: groups for judged failures, if any."""
        self._store, self._scores, self._evaluator, self._filing = store, scores, evaluator, filing
        self._telemetry, self._patience = telemetry, patience or Patience()
        judge = evaluator.settings.judge
        self._client = client
        self._traces = JobTraceLoader(store.reads, fence_secret(store), hider(judge) if judge is not None else redact)
        self._budgets, self._failures = budgets or RecordBudgets(), failures
        self._warnings = FailureWarnings()
        self._formats = FormatPauses(store)
        self._ends: dict[bytes, _Ends] = {}
        self.pauses = Pauses(self._patience.interactive)
        """While a pause lasts, no job should be started."""

    def close(self) -> None:
        self._traces.close()

    async def run(self, job: Job, too_old: bool = False) -> None:
        """Call the judge for a leased job, and file its end or put it back.

        A trace's questions are filed together. ``too_old``: end unscored (``over_budget``) without a call.
        """
        ends = self._ends.setdefault(job.trace_id, _Ends())
        ends.running += 1
        try:
            await self._judge(job, _WAITED if too_old else None)
        except Exception as error:  # noqa: BLE001 - any error must release the job
            await self._unfinished(job, error)
        finally:
            ends.running -= 1
            if not ends.running:
                self._ends.pop(job.trace_id, None)
                for model, is_valid in ends.replies.items():
                    self._formats.note(model, job.trace_id, is_valid)
        if ends.ended and not ends.running:
            await self._file(ends.ended)

    async def _file(self, ended: Sequence[tuple[Job, Judgement]]) -> None:
        """File ended jobs together, or individually if that fails."""
        parts = Isolated(ended)
        for part in parts:
            try:
                await self._filing("judged", [judgement for _, judgement in part])
            except Exception as error:  # noqa: BLE001 - as above
                if not parts.split():
                    await self._unfinished(part[0][0], error)
                continue
            for _, judgement in part:
                self._telemetry.add("pandaeval.jobs", judgement.end.state, 1, judgement.end.why)

    async def _unfinished(self, job: Job, error: Exception) -> None:
        _log.error("job %s could not be finished", job.id, exc_info=error)
        if job.attempts < self._patience.attempts:
            due_at = self._store.clock.running() + self._patience.wait(job.attempts)
            await self._put_back(job, Later(due_at, explained(error)))
        else:
            await self._filing("judged", [Judgement(JobEnd(job.id, "dead", "unfinished", explained(error)))])
            self._telemetry.add("pandaeval.jobs", "dead", 1, "unfinished")

    async def _judge(self, job: Job, instead: Unscored | None = None) -> None:
        budget, settings = USUAL_RECORD, self._evaluator.settings.judge
        if instead is None and settings is not None and (later := self._paused(settings.model_of(job.metric))):
            return await self._put_back(job, later)
        if instead is None and settings is not None and not self.pauses.given_up:
            budget = await self._budgets.of(settings.model_of(job.metric))
        try:
            loaded = await self._loaded(job, budget)
        except GoneError as error:
            return self._end(job, JobEnd(job.id, "cancelled", "gone", str(error)))
        except Exception as error:  # noqa: BLE001 - a trace must not stop the judge
            _log.exception("trace %s could not be packed for a judge", job.trace_id.hex())
            return self._end(job, JobEnd(job.id, "cancelled", "unreadable", explained(error)))
        questions = await asyncio.get_running_loop().run_in_executor(self._traces.thread, self._questions, job, loaded)
        question = next((each for each in questions if each.metric.key == job.metric), None)
        if question is None:
            return self._end(job, JobEnd(job.id, "cancelled", "not_wanted"))

        async def shorter() -> Pack:
            smaller = self._budgets.was_too_long(question.model, loaded.pack.tokens)
            return (await self._loaded(job, smaller)).pack

        together = self._evaluator.judged.together(questions, question)
        beside = {} if loaded.turn is None else {"trace": loaded.subject, "turn": loaded.turn}
        judge = Judge(
            self._client, loaded.pack, question.model, job.metric, shorter, together, question.guidance, beside
        )
        finding = instead or await self._finding(job, question, loaded, judge)
        await self._conclude(job, question, loaded, judge, finding)

    async def _conclude(
        self, job: Job, question: Question, loaded: JobTrace, judge: Judge, finding: Finding | Later | GivenUp | None
    ) -> None:
        match finding:
            case Later():
                await self._put_back(job, finding)
            case None:
                self._end(job, JobEnd(job.id, "done", "not_applicable"))
            case GivenUp() | Unscored():
                missed = finding.finding if isinstance(finding, GivenUp) else finding
                found = without_verdict(question, loaded.about(job.metric), missed)
                result = self._evaluator.judged.answered(question, found, judge.spent)
                end = JobEnd(job.id, "done", missed.why.value)
                if isinstance(finding, GivenUp):
                    end = JobEnd(job.id, "dead", missed.why.value, finding.error)
                self._end(job, end, result)
            case _:
                result = self._evaluator.judged.answered(question, finding, judge.spent, loaded.against)
                await self._group(result, question.model)
                self._end(job, JobEnd(job.id, "done", result.why or ""), result)

    async def _group(self, result: Result, model: str) -> None:
        failure = failure_of(result) if self._failures is not None else None
        if failure is None or self._failures is None:
            return

        async def ask(shown: Pack, given: Mapping[str, Any]) -> SameCause:
            return await Judge(self._client, shown, model).ask(SAME_CAUSE, given)

        result.failure_group = await judged_group(self._failures, failure, ask)

    async def _loaded(self, job: Job, budget: int) -> JobTrace:
        return await asyncio.get_running_loop().run_in_executor(self._traces.thread, self._traces, job, budget)

    def _questions(self, job: Job, loaded: JobTrace) -> list[Question]:
        about, subject = orjson.loads(job.body), loaded.subject
        if DETAIL in about:
            subjects = [each for each in (subject, loaded.turn) if isinstance(each, Trace | TurnView)]
            return [question for each in subjects for question in self._evaluator.judged.details(each)[1]]
        match subject:
            case TurnView():
                return self._evaluator.judged.of_turn(subject)[1]
            case Conversation():
                known = self._scores.conversation(about[SESSION], Trigger(about["trigger"]))
                return [] if known is None else self._evaluator.judged_session(*known)[1]
            case _:
                return self._evaluator.judged.questions(subject)[1]

    async def _finding(
        self, job: Job, question: Question, loaded: JobTrace, judge: Judge
    ) -> Finding | Later | GivenUp | None:
        if given_up := self.pauses.given_up:
            return GivenUp(Unscored(Why.JUDGE_FAILED, given_up), "not asked")
        permit = self._formats.permit(question.model)
        if permit.until:
            missed = Unscored(Why.INVALID_VERDICT, cause(question.model))
            return self._paused(question.model) or GivenUp(missed, "not asked")
        judge.about, judge.is_test = job.trace_id.hex(), permit.is_test
        try:
            subject = loaded.about(job.metric)
            finding = await question.metric.ask(subject, judge) if question.metric.ask is not None else None
            self.pauses.answered()
            if judge.spent.calls:
                self._replied(job, question.model, True)
            return finding
        except NoVerdictError as error:
            self.pauses.answered()
            self._replied(job, question.model, error.why is not Why.INVALID_VERDICT)
            return unanswered(error, job.metric)
        except CallFailedError as error:
            self._warnings.add(question.model, error)
            self.pauses.failed(error)
            return after_failure(job, error, self._patience, self._store.clock.running())
        except Exception as error:  # noqa: BLE001 - a metric's bug affects one result, not the judge
            return unanswered(error, job.metric)

    def _paused(self, model: str) -> Later | None:
        until = 0.0 if self._patience.interactive else self._formats.paused_until(model)
        return Later(until, cause(model), free=True) if until else None

    def _replied(self, job: Job, model: str, is_valid: bool) -> None:
        replies = self._ends[job.trace_id].replies
        replies[model] = is_valid or replies.get(model, False)

    async def _put_back(self, job: Job, later: Later) -> None:
        if later.pause:
            self.pauses.begin(later.due_at)
        reason = CallFailure.CRASHED.value if later.crashed else "waiting" if later.pause else "failed"
        self._telemetry.add("pandaeval.jobs", "put_back", 1, reason)
        await asyncio.wrap_future(
            self._store.jobs.put_back(
                job.id, later.due_at, later.error, crashed=later.crashed, free=later.pause or later.free
            )
        )

    def _end(self, job: Job, end: JobEnd, result: Result | None = None) -> None:
        self._ends[job.trace_id].ended.append((job, Judgement(end, result)))

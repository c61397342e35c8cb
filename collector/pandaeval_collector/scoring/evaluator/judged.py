"""Makes questions for the judged metrics, and results of the answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pandaeval_collector.base.result import (
    DISPUTED,
    UNCLEAR,
    EvaluatorInfo,
    Identity,
    Result,
    Unit,
    conclude,
    now,
)
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.judge.client import AnswerCost
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.rubric import QuestionPart
from pandaeval_collector.judge.rulings import Guidance
from pandaeval_collector.judge.selection import Choice
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.evaluator.one_metric import call_or_default, run_metric
from pandaeval_collector.scoring.evaluator.plan import MetricPlan
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.evaluator.settings import VERDICT, JudgeSettings
from pandaeval_collector.scoring.evaluator.units import trace_unit, turn_unit
from pandaeval_collector.scoring.metric import (
    JudgedMetric,
    JudgedSessionMetric,
    JudgedTraceMetric,
    JudgedTurnMetric,
    Metric,
    SessionContext,
    SessionView,
    Texts,
    TraceContext,
    TurnContext,
    TurnMetric,
    answered_with,
)
from pandaeval_otel.model import Trace

J = TypeVar("J", JudgedTraceMetric, JudgedTurnMetric)
_SPAN_ID = re.compile("[0-9a-f]{16}")
MOST_CITED = 128
"""Maximum cited spans of a finding."""
PASSING = frozenset({Why.JUDGE_FAILED, Why.TIMEOUT, Why.OVER_BUDGET, Why.INVALID_VERDICT, Why.METRIC_ERROR})
"""Reasons that another attempt can remove."""
UNJUDGED = "unjudged"
"""Metadata key of a finding by code: the reason why no judge's verdict exists."""
_SELECTED = Choice(selected=True)
_NOT_SAMPLED = Unscored(Why.NOT_SAMPLED, "not in the sample (judge.sample)")


def provenance(finding: Finding, spent: AnswerCost, model: str) -> Mapping[str, Any]:
    """Return the judge's metadata of a result; empty if no judge was asked.

    ``truncated``: the record was cut. ``judge.cited``: span ids in the verdict. ``judge.tokens.cached``: input tokens
    from the provider's cache. ``judge.calls``: 0 for a remembered verdict.
    """
    if not spent.pack:
        return {}
    judge: dict[str, Any] = {
        "model": spent.model or model,
        "prompt_version": PROMPT_VERSION,
        "pack": spent.pack,
        "calls": spent.calls,
        "tokens": {"input": spent.prompt, "output": spent.completion, "cached": spent.cached},
        "cost_usd": spent.cost_usd,
    }
    if isinstance(finding, Score) and finding.span_ids:
        judge["cited"] = [*dict.fromkeys(filter(_SPAN_ID.fullmatch, finding.span_ids))][:MOST_CITED]
    metadata: dict[str, Any] = {"judge": judge}
    if spent.truncated:
        metadata["truncated"] = [*spent.truncated]
    if spent.suspected:
        metadata["injection_suspected"] = True
    return metadata


@dataclass(frozen=True, slots=True)
class Question:
    """A judged metric to ask about a subject. ``id``: of the future result."""

    id: str
    metric: JudgedMetric
    unit: Unit
    model: str
    threshold: float
    choice: Choice
    guidance: Guidance

    @property
    def version(self) -> str:
        """The metric's version, with a suffix if rulings apply."""
        return f"{self.metric.version}{self.guidance.mark}"


class Judged:
    """Makes questions and results of the enabled judged metrics; none without a judge."""

    def __init__(self, plan: MetricPlan, preparation: Preparation) -> None:
        self._judge, self._preparation, self._plan = preparation.settings.judge, preparation, plan
        embedder = preparation.embedder
        self._no_texts = Texts({}, frozenset(), embedder.id, embedder.bands)
        self._of_traces = plan.judged(JudgedTraceMetric)
        self._of_turns = plan.judged(JudgedTurnMetric)
        self._of_sessions = plan.judged(JudgedSessionMetric)

    @property
    def _settings(self) -> JudgeSettings:
        assert self._judge is not None, "there is no question without a judge"
        return self._judge

    def concerns(self, trace: Trace, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether traces with these span and resource ``attributes`` are judged."""
        judge = self._judge
        return judge is not None and judge.selection.concerns(trace.agent, attributes)

    def questions(self, trace: Trace) -> tuple[list[Result], list[Question]]:
        """Return the results that need no judge, and questions for the others."""
        return self._asked(
            self._of(trace.session_id),
            trace,
            trace,
            trace_unit(trace),
            self._choice(trace),
            partial(TraceContext, self._no_texts),
        )

    def details(self, subject: Trace | TurnView) -> tuple[list[Result], list[Question]]:
        """Like :meth:`questions`, for the questions about a trace or turn that wait for a verdict."""
        if isinstance(subject, TurnView):
            of_turn = self._waiting(self._of_turns, subject.trace)
            return self._asked(of_turn, subject, subject.trace, turn_unit(subject), _SELECTED, TurnContext)
        of_trace, context = self._waiting(self._of_traces, subject), partial(TraceContext, self._no_texts)
        return self._asked(of_trace, subject, subject, trace_unit(subject), _SELECTED, context)

    def details_of_turn(self, trace: Trace, index: int) -> tuple[list[Result], list[Question]]:
        return self.details(turn_view(trace, index))

    def _waiting(self, metrics: Iterable[J], trace: Trace) -> list[J]:
        return [metric for metric in metrics if self._plan.waits(metric, trace.session_id is not None)]

    def selects(self, result: Result) -> bool:
        """Return whether a result decides about further questions (``judge.detail: failing``)."""
        unit, judge = result.unit, self._judge
        is_first = unit.level == ("trace" if unit.session_id is None else "session")
        return judge is not None and judge.detail == "failing" and result.metric == VERDICT and is_first

    def _of(self, session_id: str | None) -> list[JudgedTraceMetric]:
        by_trace = session_id is None or self._settings.correctness == "trace"
        return [m for m in self._at_once(self._of_traces, session_id) if by_trace or not m.asked_by_session]

    def _at_once(self, metrics: Iterable[J], session_id: str | None) -> list[J]:
        return [metric for metric in metrics if not self._plan.waits(metric, session_id is not None)]

    def of_turns(self, trace: Trace) -> tuple[list[Result], list[Question]]:
        results: list[Result] = []
        questions: list[Question] = []
        if not self._of_turns or trace.is_step:
            return results, questions
        metrics = {metric.name: metric for metric in self._of_turns}
        for view in (turn_view(trace, index) for index in range(len(trace.turns))):
            if LIMIT.is_over:
                break
            of_turn, asked = self.of_turn(view)
            questions += asked
            for result in of_turn:
                by_code = None
                if result.why == Why.NOT_SAMPLED:
                    by_code = self.without_judge(metrics[result.metric], view)
                results.append(by_code or result)
        return results, questions

    def without_judge(self, metric: JudgedTurnMetric, view: TurnView) -> Result | None:
        score = score_by_code(metric, view)
        if score is None:
            return None
        return conclude(turn_unit(view), [(self._preparation.by_code(metric), score, 0.0)])[0]

    def of_turn(self, view: TurnView) -> tuple[list[Result], list[Question]]:
        metrics = self._at_once(self._of_turns, view.trace.session_id)
        choice = self._choice(view.trace)
        return self._asked(metrics, view, view.trace, turn_unit(view), choice, TurnContext)

    def of_session(
        self, session: SessionView, unit: Unit, context: Callable[[float], SessionContext]
    ) -> tuple[list[Result], list[Question]]:
        if not self._of_sessions:
            return [], []
        choice = self._settings.selection.choose(unit.id)
        return self._asked(self._of_sessions, session, None, unit, choice, context)

    def together(self, questions: Sequence[Question], question: Question) -> tuple[QuestionPart, ...]:
        """Return the questions that share a call with this question."""
        if question.metric.part is None:
            return ()
        parts: dict[str, QuestionPart] = {}
        for each in questions:
            is_same = each.choice.selected or each.unit.id == question.unit.id
            if is_same and each.model == question.model and each.metric.part is not None:
                parts.setdefault(each.metric.part.name, each.guidance.added_to(each.metric.part))
        return tuple(parts.values())

    def _asked(
        self,
        metrics: Sequence[JudgedMetric],
        subject: Any,
        trace: Trace | None,
        unit: Unit,
        choice: Choice,
        context: Callable[[float], Any],
    ) -> tuple[list[Result], list[Question]]:
        results: list[Result] = []
        questions: list[Question] = []
        if not metrics:
            return results, questions
        refused = _refused(trace)
        for metric in metrics:
            if not applies(metric, subject):
                continue
            question = self._question(metric, unit, choice)
            finding: Finding | None = refused if choice.included else _NOT_SAMPLED
            if finding is None:
                finding = run_metric(metric, subject, context(question.threshold))
            if finding is None:
                questions.append(question)
            else:
                results.append(self.answered(question, finding))
        return results, questions

    def _choice(self, trace: Trace) -> Choice:
        if trace.session_id is None and trace.continues:
            return Choice()  # the session is unknown, so the draw happens later
        whole = trace.session_id or next(reversed(trace.responses), trace.trace_id)
        return self._settings.selection.choose(whole)

    def drawn(self, results: Sequence[Result], unit: Unit) -> tuple[list[Result], dict[str, Choice]]:
        """Repeat the draw for a trace whose session is known now.

        Returns the results without a call, and the choices by metric key. Metrics outside the sample become
        ``not_sampled``. Drops results of metrics that the session answers.
        """
        choice = self._settings.selection.choose(unit.session_id or unit.trace_id)
        of_trace = self._of(unit.session_id)
        asked: dict[str, JudgedMetric] = {metric.key: metric for metric in of_trace}
        asked |= {metric.key: metric for metric in self._at_once(self._of_turns, unit.session_id)}
        by_session = {*(each.key for each in self._of_traces), *(each.key for each in self._of_turns)} - asked.keys()
        drawn: list[Result] = []
        for result in results:
            key = result.key
            if key in by_session and result.evaluator.kind == "llm":
                continue
            if key in asked and result.evaluator.kind != "code":
                result = self._drawn(result, asked[key], choice)
            drawn.append(result)
        if not choice.included:
            given = {result.metric for result in results if result.unit.level == "trace"}
            left_out = (metric for metric in of_trace if metric.name not in given)
            drawn += [self.answered(self._question(metric, unit, choice), _NOT_SAMPLED) for metric in left_out]
        return drawn, dict.fromkeys(asked, choice) | dict.fromkeys(by_session, Choice(included=False))

    def _drawn(self, result: Result, metric: JudgedMetric, choice: Choice) -> Result:
        if choice.included:
            return replace(result, finding=_with(result.finding, choice, {}))
        return self.answered(self._question(metric, result.unit, choice), _NOT_SAMPLED)

    def answered(
        self,
        question: Question,
        finding: Finding,
        spent: AnswerCost | None = None,
        against: Mapping[str, str] | None = None,
    ) -> Result:
        """Make the result of a question.

        Provider and budget failures get their own id, so a later answer is a new result. ``against``: the failure that
        code found.
        """
        if question.metric.name == VERDICT and isinstance(finding, Score) and "sure" in finding.metadata:
            finding = verdict(finding, self._settings.unclear, against)
        metric, id_, spent = question.metric, question.id, spent or AnswerCost()
        by = EvaluatorInfo(metric.kind, question.version, spent.model or question.model)
        unjudged = finding.metadata.get(UNJUDGED)
        if isinstance(finding, Unscored) and finding.why in PASSING:
            unjudged = finding.why.value
        elif unjudged is not None:
            by = EvaluatorInfo("code", metric.version)
        if unjudged is not None:
            depends = {**self._preparation.depends_on(metric, question.threshold), "why": unjudged}
            id_ = Identity(metric.key, question.version, question.model, depends).of(question.unit)
        return Result(
            id=id_,
            metric=metric.name,
            unit=question.unit,
            finding=_with(finding, question.choice, provenance(finding, spent, question.model)),
            evaluator=by,
            threshold=question.threshold,
            revision=question.unit.revision,
            final=True,
            duration_ms=round(spent.seconds * 1e3, 3),
            time=now(),
            cost_usd=spent.cost_usd,
            tokens=spent.tokens,
        )

    def _question(self, metric: JudgedMetric, unit: Unit, choice: Choice) -> Question:
        threshold, origin = self._preparation.of(metric)
        identity, model = origin.identity, self._settings.model_of(metric.key)
        guidance = self._settings.guidance(metric, unit.agent, answered_with(metric, self._of_sessions))
        if guidance.texts:
            depends = self._preparation.depends_on(metric, threshold)
            identity = Identity(metric.key, f"{metric.version}{guidance.mark}", model, depends)
        return Question(identity.of(unit), metric, unit, model, threshold, choice, guidance)


def _refused(trace: Trace | None) -> Unscored | None:
    if trace is None or not trace.forced:
        return None
    return Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")


def verdict(finding: Score, band: tuple[float, float], against: Mapping[str, str] | None) -> Score:
    """Label an undecided verdict.

    ``unclear``: the certainty is in ``band``. ``disputed``: the judge finds no fault, but code found a failure
    (``against``).
    """
    if band[0] <= finding.metadata["sure"] <= band[1]:
        return replace(finding, label=UNCLEAR)
    if finding.label is None and against:
        reason = f"{finding.reason} Disputed by {against['metric']}: {against['reason']}"
        return replace(finding, label=DISPUTED, reason=reason, metadata={**finding.metadata, "disputed_by": against})
    return finding


def without_verdict(question: Question, subject: Any, missed: Unscored) -> Finding:
    """Return the finding for a question without a verdict: the score by code, else ``missed``."""
    score = score_by_code(question.metric, subject)
    return missed if score is None else replace(score, metadata={**score.metadata, UNJUDGED: missed.why.value})


def score_by_code(metric: Metric, subject: Any) -> Score | None:
    """Score a judged turn metric by code; ``None`` if impossible."""
    if not isinstance(metric, JudgedTurnMetric) or metric.by_code is None:
        return None
    return call_or_default(metric, metric.by_code, subject, None)


def applies(metric: Metric, subject: Any) -> bool:
    """Return whether a metric is evaluated. If its check raises, it is evaluated, and fails there."""
    if not isinstance(metric, TurnMetric | JudgedTurnMetric) or metric.applies is None:
        return True
    return call_or_default(metric, metric.applies, subject, True)


def _with(finding: Finding, choice: Choice, more: Mapping[str, Any]) -> Finding:
    chosen: dict[str, Any] = {"inclusion_probability": choice.probability}
    if choice.selected:
        chosen["selected"] = True
    return replace(finding, metadata={**finding.metadata, **chosen, **more})

"""The judged metrics of traces, their turns and sessions: the questions that a model has to answer, and the results of
its answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pandaeval_collector.base.result import EvaluatorInfo, Identity, Result, Unit, conclude, now
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT
from pandaeval_collector.judge.desk import AnswerCost
from pandaeval_collector.judge.prompt import PROMPT_VERSION
from pandaeval_collector.judge.rubric import Guidance, QuestionPart
from pandaeval_collector.judge.selection import Choice
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.evaluator.one_metric import ask, attempt, refusal, trace_unit, turn_unit
from pandaeval_collector.scoring.evaluator.prepared import JudgeSettings, Preparation
from pandaeval_collector.scoring.metric import (
    Metric,
    SessionContext,
    SessionView,
    Texts,
    TraceContext,
    TurnContext,
    TurnMetric,
    ends,
)
from pandaeval_otel.model import Trace

_SPAN_ID = re.compile("[0-9a-f]{16}")
MOST_CITED = 128
"""Spans that a finding names are cited up to this number."""


def provenance(finding: Finding, spent: AnswerCost, model: str) -> Mapping[str, Any]:
    """Returns metadata of a result: ``judge``, ``truncated`` if the record was cut, and ``injection_suspected`` if
    words in it speak to a judge; nothing if no judge was asked. ``model``: named where none answered.

    ``judge.cited``: ids of the spans that the verdict names; ``judge.tokens.cached``: those of ``input`` that came from
    the provider's cache; ``judge.calls``: 0 where the verdict was remembered.
    """
    if not spent.pack:
        return {}
    about: dict[str, Any] = {
        "model": spent.model or model,
        "prompt_version": PROMPT_VERSION,
        "pack": spent.pack,
        "calls": spent.calls,
        "tokens": {"input": spent.prompt, "output": spent.completion, "cached": spent.cached},
        "cost_usd": spent.cost_usd,
    }
    cited = finding.span_ids if isinstance(finding, Score) else ()
    if cited:
        about["cited"] = [*dict.fromkeys(each for each in cited if _SPAN_ID.fullmatch(each))][:MOST_CITED]
    found: dict[str, Any] = {"judge": about}
    if spent.truncated:
        found["truncated"] = [*spent.truncated]
    if spent.suspected:
        found["injection_suspected"] = True
    return found


PASSING = frozenset({Why.JUDGE_FAILED, Why.TIMEOUT, Why.OVER_BUDGET, Why.INVALID_VERDICT, Why.METRIC_ERROR})
"""Whys that another try may take away."""
UNJUDGED = "unjudged"
"""The key, in the metadata of what code says, of why no judge said more."""
_NOT_SAMPLED = Unscored(Why.NOT_SAMPLED, "not in the sample (judge.sample)")


@dataclass(frozen=True, slots=True)
class Question:
    """A judged metric to be asked about one trace, turn or session. ``id``: of the result that the answer will make."""

    id: str
    metric: Metric[Any, Any]
    unit: Unit
    model: str
    threshold: float
    choice: Choice = field(default_factory=Choice)
    guidance: Guidance = field(default_factory=Guidance)

    @property
    def version(self) -> str:
        """The metric's version, with a suffix if guidelines are added to its question."""
        return f"{self.metric.version}{self.guidance.mark}"

    @property
    def passes_from(self) -> float:
        """The threshold as a score of 0..1."""
        least, most = ends(self.metric.scale)
        return (self.threshold - least) / (most - least)


class Judged:
    """Makes questions and results of the enabled judged metrics; of none without a judge."""

    def __init__(self, metrics: Sequence[Metric[Any, Any]], preparation: Preparation) -> None:
        self._judge, self._preparation = preparation.settings.judge, preparation
        self._metrics = [metric for metric in metrics if metric.level == "trace"]
        self.keys = sorted(metric.key for metric in self._metrics)
        """The keys of the trace metrics that a judge is asked for, sorted."""
        self._of_turns = [metric for metric in metrics if metric.level == "turn"]
        self._of_sessions = [metric for metric in metrics if metric.level == "session"]

    @property
    def _settings(self) -> JudgeSettings:
        assert self._judge is not None, "there is no question without a judge"
        return self._judge

    def concerns(self, trace: Trace, attributes: Iterable[Mapping[str, Any]]) -> bool:
        """Returns whether traces like this one are judged at all. ``attributes``: of its spans and their resources."""
        judge = self._judge
        return judge is not None and judge.selection.concerns(trace.agent, attributes)

    def questions(self, trace: Trace, suspicious: bool = False) -> tuple[list[Result], list[Question]]:
        """Runs the judged metrics of a trace: returns results that need no model, and questions for the others."""
        embedder = self._preparation.embedder
        texts = Texts({}, frozenset(), embedder.id, embedder.bands)
        return self._asked(
            self._of(trace.session_id),
            trace,
            trace,
            trace_unit(trace),
            suspicious,
            lambda threshold: TraceContext(texts, threshold),
        )

    def _of(self, session_id: str | None) -> list[Metric[Any, Any]]:
        """Returns the metrics that a judge is asked for about a trace of this session, or without one."""
        every = session_id is None or self._settings.correctness == "trace"
        return [metric for metric in self._metrics if every or not metric.asked_by_session]

    def of_turns(self, trace: Trace, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Returns, for all turns of a trace, the results that need no model, and questions for the others."""
        results: list[Result] = []
        questions: list[Question] = []
        if not self._of_turns or trace.is_step:
            return results, questions
        metrics = {metric.name: metric for metric in self._of_turns}
        for view in (turn_view(trace, index) for index in range(len(trace.turns))):
            if LIMIT.is_over:
                break
            found, asked = self.of_turn(view, suspicious)
            questions += asked
            for result in found:
                drawn = result.why != Why.NOT_SAMPLED
                coded = None if drawn else self.without_judge(metrics[result.metric], view)
                results.append(coded or result)
        return results, questions

    def without_judge(self, metric: TurnMetric, view: TurnView) -> Result | None:
        """Returns the result of a judged metric by code alone; ``None`` where code cannot score the turn."""
        found = score_by_code(metric, view)
        if found is None:
            return None
        return conclude(turn_unit(view), [(self._preparation.by_code(metric), found, 0.0)])[0]

    def of_turn(self, view: TurnView, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Returns the results of one turn that need no model, and questions for the others."""
        return self._asked(self._of_turns, view, view.trace, turn_unit(view), suspicious, TurnContext)

    def of_session(
        self, session: SessionView, unit: Unit, suspicious: bool, context: Callable[[float], SessionContext]
    ) -> tuple[list[Result], list[Question]]:
        """Returns the results of a session that need no model, and questions for the others."""
        return self._asked(self._of_sessions, session, None, unit, suspicious, context)

    def together(self, questions: Sequence[Question], question: Question) -> tuple[QuestionPart[Any], ...]:
        """Returns the questions about the same trace or turn, to the same model, that are put in one call with this
        one."""
        # One with guidelines needs a call of its own.
        if question.metric.part is None or question.guidance.texts:
            return ()
        return tuple(
            each.metric.part
            for each in questions
            if each.model == question.model and each.unit.id == question.unit.id and not each.guidance.texts
            if each.metric.part is not None
        )

    def _asked(
        self,
        metrics: Sequence[Metric[Any, Any]],
        subject: Any,
        trace: Trace | None,
        unit: Unit,
        suspicious: bool,
        context: Callable[[float], Any],
    ) -> tuple[list[Result], list[Question]]:
        """``trace``: whose own state may refuse a verdict, and by which it is drawn; ``None``: a session is judged."""
        results: list[Result] = []
        questions: list[Question] = []
        whole = unit.id if trace is None else trace.session_id or next(reversed(trace.responses), trace.trace_id)
        refused = None if trace is None else refusal(trace)
        if refused is None and trace is not None and trace.forced:
            refused = Unscored(Why.INCOMPLETE_TRACE, f"closed by {trace.trigger} before the root span ended")
        for metric in metrics:
            if trace is not None and not applies(metric, subject):
                continue
            # Always, while a conversation's session is not known: it is drawn later.
            later = trace is not None and trace.session_id is None and trace.continues
            choice = Choice() if later else self._settings.selection.choose(whole, suspicious)
            question = self._question(metric, unit, choice)
            finding: Finding | None = refused if choice.included else _NOT_SAMPLED
            if finding is None:
                finding = ask(metric, subject, context(question.threshold), None)
            if finding is None:
                questions.append(question)
            else:
                results.append(self.answered(question, finding))
        return results, questions

    def drawn(self, results: Sequence[Result], unit: Unit, suspicious: bool) -> tuple[list[Result], dict[str, Choice]]:
        """Draws anew for a trace that was asked about before its session was known; ``unit`` names the session, if
        there is one. Returns the results that were given without asking, and the choices by metric key. Metrics that
        are not chosen become ``not_sampled``; those that the session answers have no result any more."""
        whole, asked = unit.session_id or unit.trace_id, self._of(unit.session_id)
        metrics = {m.key: m for m in (*asked, *self._of_turns)}
        choices = dict.fromkeys(metrics, self._settings.selection.choose(whole, suspicious))
        left = {m.key: Choice(False, 0.0, False) for m in self._metrics if m.key not in metrics}
        found: list[Result] = []
        for result in results:
            key = f"{result.unit.level}.{result.metric}"
            choice = choices.get(key)
            if key in left:
                continue
            if choice is not None and result.evaluator.kind != "code":
                if choice.included:
                    result = replace(result, finding=_with(result.finding, choice, {}))
                else:
                    result = self.answered(self._question(metrics[key], result.unit, choice), _NOT_SAMPLED)
            found.append(result)
        given = {result.metric for result in results if result.unit.level == "trace"}
        left_out = [m for m in asked if not choices[m.key].included and m.name not in given]
        found += [self.answered(self._question(m, unit, choices[m.key]), _NOT_SAMPLED) for m in left_out]
        return found, choices | left

    def answered(self, question: Question, finding: Finding, spent: AnswerCost | None = None) -> Result:
        """Makes the result of a question. A failure of the provider or the budget gets an id of its own, so that an
        answer at a later try is a new result."""
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

    def _question(self, metric: Metric[Any, Any], unit: Unit, choice: Choice) -> Question:
        threshold, origin = self._preparation.of(metric)
        identity, model = origin.identity, self._settings.model_of(metric.key)
        guidance = self._settings.guidance(metric, unit.agent)
        if guidance.texts:
            depends = self._preparation.depends_on(metric, threshold)
            identity = Identity(metric.key, f"{metric.version}{guidance.mark}", model, depends)
        return Question(identity.of(unit), metric, unit, model, threshold, choice, guidance)


def without_verdict(question: Question, subject: Any, missed: Unscored) -> Finding:
    """Returns the finding for a question without a verdict: the score by code, marked as unjudged, else ``missed``."""
    found = score_by_code(question.metric, subject)
    return missed if found is None else replace(found, metadata={**found.metadata, UNJUDGED: missed.why.value})


def score_by_code(metric: Metric[Any, Any], subject: Any) -> Score | None:
    """Scores a judged metric by code alone (``Metric.by_code``); returns ``None`` where that is not possible."""
    return None if metric.by_code is None else attempt(metric, metric.by_code, subject, None)


def applies(metric: Metric[Any, Any], subject: Any) -> bool:
    """Returns whether a metric is asked about the subject at all; one whose check fails is asked, and fails there."""
    return metric.applies is None or attempt(metric, metric.applies, subject, True)


def _with(finding: Finding, choice: Choice, more: Mapping[str, Any]) -> Finding:
    chosen = {"inclusion_probability": choice.probability, "in_sample": choice.in_sample}
    return replace(finding, metadata={**finding.metadata, **chosen, **more})

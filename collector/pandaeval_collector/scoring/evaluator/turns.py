"""The metrics of a trace's turns: the results that code computes, and the questions that a judge has to answer."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pandaeval_collector.base.concluding import Origin, conclude
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Result
from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.base.metric_cpu import CPU
from pandaeval_collector.scoring.evaluator.judged import Judged, Question, applies, score_by_code
from pandaeval_collector.scoring.evaluator.one_metric import ask, refusal, turn_unit
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.metric import Metric, TurnContext, TurnMetric
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.turns import of_turn

T = TypeVar("T")


class TurnEvaluation:
    """Runs the turn metrics in ``metrics``, also those without a judge; ``judged``: ``None`` without a judge."""

    def __init__(self, metrics: Sequence[Metric[Any, Any]], preparation: Preparation, judged: Judged | None) -> None:
        of_turns: list[TurnMetric] = [metric for metric in metrics if metric.level == "turn"]
        self._inline = [metric for metric in of_turns if metric.kind != "llm"]
        self._by_code = [metric for metric in of_turns if metric.by_code is not None]
        self._asks = judged is not None and any(metric.kind == "llm" for metric in of_turns)
        self._judged, self._preparation = judged, preparation

    def inline(self, trace: Trace, is_judged: bool) -> list[Result]:
        """Returns the results of each turn that need no judge; none of a step. ``is_judged``: whether a judge is asked
        about the trace; else the results include judged metrics that code can score (``Metric.by_code``)."""
        by_code = [] if is_judged or len(trace.tool_calls) < 2 else self._by_code
        if not (self._inline or by_code) or trace.is_step:
            return []
        results: list[Result | None] = []
        refused = refusal(trace, self._preparation.settings)
        spent = _Spent()
        for index in range(len(trace.turns)):
            bare = TurnView(of_turn(trace, index))  # most have nothing to say, and need no history for it
            known = [] if refused is not None else by_code
            found = [metric for metric in known if spent.by(metric, score_by_code, metric, bare) is not None]
            if found or self._inline:
                view = turn_view(trace, index)
                results += [spent.by(metric, self._run, metric, view, refused) for metric in self._inline]
                results += [spent.by(metric, self.without_judge, metric, view) for metric in found]
        spent.count(trace.trace_id)
        return [result for result in results if result is not None]

    def questions(self, trace: Trace, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Returns, for all turns, the results that need no model, and questions for the others."""
        results: list[Result] = []
        questions: list[Question] = []
        judged = self._judged
        if judged is None or not self._asks or trace.is_step:
            return results, questions
        for view in (turn_view(trace, index) for index in range(len(trace.turns))):
            found, asked = judged.of_turn(view, suspicious)
            questions += asked
            for result in found:
                said = self._stands(result, view) if result.why == Why.NOT_SAMPLED else None
                results.append(result if said is None else said)
        return results, questions

    def about(self, view: TurnView, suspicious: bool) -> list[Question]:
        """Returns the questions about one turn."""
        return [] if self._judged is None else self._judged.of_turn(view, suspicious)[1]

    def without_judge(self, metric: TurnMetric, view: TurnView) -> Result | None:
        """Returns the result of a judged metric by code alone; ``None`` where code cannot score the turn."""
        found = score_by_code(metric, view)
        return None if found is None else conclude(turn_unit(view), [(self.by_code(metric), found, 0.0)])[0]

    def by_code(self, metric: TurnMetric) -> Origin:
        """Returns what results of a judged metric that code made share."""
        threshold = self._preparation.of(metric).threshold
        identity = Identity(metric.key, metric.version, None, {**metric.settings, "threshold": threshold})
        return Origin(metric.name, identity, EvaluatorInfo("code", metric.version), threshold)

    def _stands(self, result: Result, view: TurnView) -> Result | None:
        metric = next((each for each in self._by_code if each.name == result.metric), None)
        return None if metric is None else self.without_judge(metric, view)

    def _run(self, metric: TurnMetric, view: TurnView, refused: Unscored | None) -> Result | None:
        prepared = self._preparation.of(metric)
        started = time.perf_counter()
        if not applies(metric, view):
            return None
        found = ask(metric, view, TurnContext(prepared.threshold), refused)
        elapsed = (time.perf_counter() - started) * 1e3
        return None if found is None else conclude(turn_unit(view), [(prepared.origin, found, elapsed)])[0]


class _Spent:
    """Measures what metrics take for the turns of a trace, if this trace is measured."""

    def __init__(self) -> None:
        self._weight = CPU.weight()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def by(self, metric: TurnMetric, call: Callable[..., T], *given: Any) -> T:
        """Returns what ``call`` returns, and counts its CPU time to ``metric``."""
        if not self._weight:
            return call(*given)
        before = time.thread_time()
        found = call(*given)
        self._seconds[metric.key] += time.thread_time() - before
        return found

    def count(self, trace_id: str) -> None:
        """Adds the measured times to :data:`CPU`."""
        if self._weight:
            CPU.add_for(trace_id, [*self._seconds.items()], self._weight)

"""The metrics of a trace's turns: the results that code computes, and the questions that a judge has to answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pandaeval_collector.base.metric_cpu import CPU
from pandaeval_collector.base.result import EvaluatorInfo, Identity, Origin, Result, conclude
from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.evaluator.judged import Judged, Question, applies, score_by_code
from pandaeval_collector.scoring.evaluator.one_metric import ask, refusal, turn_unit
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.metric import Metric, TurnContext, TurnMetric
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.turns import of_turn


class TurnEvaluation:
    """Runs the turn metrics in ``metrics``, also those without a judge. ``asks``: there is a judge."""

    def __init__(
        self, metrics: Sequence[Metric[Any, Any]], preparation: Preparation, judged: Judged, asks: bool
    ) -> None:
        of_turns: list[TurnMetric] = [metric for metric in metrics if metric.level == "turn"]
        self._inline = [metric for metric in of_turns if metric.kind != "llm"]
        self._by_code = {metric.name: metric for metric in of_turns if metric.by_code is not None}
        self._asks = asks and any(metric.kind == "llm" for metric in of_turns)
        self._judged, self._preparation = judged, preparation

    def inline(self, trace: Trace, is_judged: bool) -> list[Result]:
        """Returns the results of each turn that need no judge; none of a step. ``is_judged``: whether a judge is asked
        about the trace; else the results include judged metrics that code can score (``Metric.by_code``)."""
        by_code = [] if is_judged or len(trace.tool_calls) < 2 else [*self._by_code.values()]
        if not (self._inline or by_code) or trace.is_step:
            return []
        results: list[Result] = []
        refused = refusal(trace, self._preparation.settings)
        spent = CPU.measure()
        for index in range(len(trace.turns)):
            found = []
            bare = TurnView(of_turn(trace, index))  # most have nothing to say, and need no history for it
            for metric in by_code if refused is None else ():
                if score_by_code(metric, bare) is not None:
                    found.append(metric)
                spent.count(metric.key)
            if not found and not self._inline:
                continue
            view = turn_view(trace, index)
            for metric in self._inline:
                threshold, origin = self._preparation.of(metric)
                started = time.perf_counter()
                said = ask(metric, view, TurnContext(threshold), refused) if applies(metric, view) else None
                if said is not None:
                    results += conclude(turn_unit(view), [(origin, said, (time.perf_counter() - started) * 1e3)])
                spent.count(metric.key)
            for metric in found:
                results += [result] if (result := self.without_judge(metric, view)) is not None else []
                spent.count(metric.key)
        spent.end(trace.trace_id)
        return results

    def questions(self, trace: Trace, suspicious: bool) -> tuple[list[Result], list[Question]]:
        """Returns, for all turns, the results that need no model, and questions for the others."""
        results: list[Result] = []
        questions: list[Question] = []
        if not self._asks or trace.is_step:
            return results, questions
        for view in (turn_view(trace, index) for index in range(len(trace.turns))):
            found, asked = self._judged.of_turn(view, suspicious)
            questions += asked
            for result in found:
                metric = self._by_code.get(result.metric) if result.why == Why.NOT_SAMPLED else None
                said = None if metric is None else self.without_judge(metric, view)
                results.append(result if said is None else said)
        return results, questions

    def about(self, view: TurnView, suspicious: bool) -> list[Question]:
        """Returns the questions about one turn."""
        return self._judged.of_turn(view, suspicious)[1]

    def without_judge(self, metric: TurnMetric, view: TurnView) -> Result | None:
        """Returns the result of a judged metric by code alone; ``None`` where code cannot score the turn."""
        found = score_by_code(metric, view)
        return None if found is None else conclude(turn_unit(view), [(self.by_code(metric), found, 0.0)])[0]

    def by_code(self, metric: TurnMetric) -> Origin:
        """Returns what results of a judged metric that code made share."""
        threshold = self._preparation.of(metric).threshold
        identity = Identity(metric.key, metric.version, None, {**metric.settings, "threshold": threshold})
        return Origin(metric.name, identity, EvaluatorInfo("code", metric.version), threshold)

"""Judges the runs of files by a metric, with an added ruling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Why
from pandaeval_collector.config import Config
from pandaeval_collector.judge.rulings import Ruling
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import judge, scoring
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.alignment.align import JudgedUnit, LabelledRun
from pandaeval_lab.replay.files import BadLine, Request
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles


@dataclass
class FileJudging:
    """Judges the runs in ``requests`` by a metric.

    ``agent``: the agent of a ruling, ``""`` for all.
    """

    config: Config
    requests: Sequence[Request | BadLine]
    metric: str
    agent: str
    environ: Mapping[str, str]
    spent: float = 0.0
    _evaluators: dict[str, Evaluator] = field(default_factory=dict)

    def first(self, units: Mapping[str, object]) -> dict[str, Result]:
        return self._results("", set(units))

    def __call__(self, text: str, runs: Sequence[LabelledRun]) -> dict[str, JudgedUnit]:
        return {unit: judged(each) for unit, each in self._results(text, {run.unit for run in runs}).items()}

    def remaining(self) -> Config:
        """Return the configuration with the rest of ``judge.daily_usd``, which limits all passes together."""
        limit = self.config.judge.daily_usd
        if limit is None:
            return self.config
        rest = {"daily_usd": max(0.0, limit - self.spent)}
        return self.config.model_copy(update={"judge": self.config.judge.model_copy(update=rest)})

    def evaluator(self, text: str) -> Evaluator:
        if text not in self._evaluators:
            from pandaeval_collector.analysis.embedding import load

            settings = scoring(self.config)
            assert settings.judge is not None
            more = [Ruling.model_validate({"metric": self.metric, "text": text, "agent": self.agent})] if text else []
            rulings = (*settings.judge.rulings(), *more)
            asked = replace(settings.judge, rulings=lambda: rulings)
            settings = replace(settings, enabled=frozenset({self.metric}), judge=asked)
            embedder = next((each.embedder for each in self._evaluators.values()), None) or load(
                self.config.embedding.model
            )
            self._evaluators[text] = Evaluator(embedder, settings)
        return self._evaluators[text]

    def _results(self, text: str, units: set[str]) -> dict[str, Result]:
        wanted = units | {unit.partition(":")[0] for unit in units}  # the unit of a turn begins with its trace

        def where(run: ScoredTrace) -> bool:
            return run.unit.trace_id in wanted or run.unit.session_id in wanted

        found: dict[str, Result] = {}
        config, scorer = judge(self.remaining()), self.evaluator(text)
        assert config is not None
        with (
            TraceFiles(close_rules(self.config)) as files,
            ReplayJudge(files.store, scorer, config, self.environ) as asked,
        ):
            files.add_all(self.requests)
            for result in replay(files, scorer, asked, where=where):
                self.spent += result.cost_usd
                if result.why == Why.OVER_BUDGET:
                    raise UserError(f"{self.metric}: {result.finding.reason}; raise it, or pass fewer labels")
                unit = result.unit
                if result.key == self.metric and unit.id in units:
                    found[unit.id] = result
        return found


def judged(result: Result) -> JudgedUnit:
    return JudgedUnit(result.success if result.outcome == "scored" else None, result.finding.reason)

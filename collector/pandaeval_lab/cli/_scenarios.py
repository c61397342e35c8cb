"""Checks scenarios' own thresholds over all turns of their conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rich.console import Console

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Why
from pandaeval_collector.cli._output import print_table
from pandaeval_collector.config import Config
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.texts import number
from pandaeval_lab.cases.graders import CORRECT
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cli._gates import GateOutcome, checked
from pandaeval_lab.cli._names import names_of
from pandaeval_lab.cli._stages import Stage
from pandaeval_lab.cli._summary import Document, Summary


@dataclass(frozen=True, slots=True)
class _Held:
    config: Config
    thresholds: Mapping[str, float]
    found: Summary = field(default_factory=Summary)


class Scenarios(Stage):
    """Gathers results of scenarios with thresholds or a severity gate."""

    def __init__(
        self, config: Config, suite: Suite, case_of: Callable[[str], str | None], no_fail: bool = False
    ) -> None:
        self._no_fail = no_fail
        self._held: dict[str, _Held] = {}
        self._case_of, names = case_of, names_of(config)
        for case in suite.cases:
            if (scenario := case.scenario) and scenario.has_gates:
                of_gates = {"fail_on_error_severity": scenario.fail_on_error_severity}
                parts = {
                    "metrics": config.metrics.model_copy(update={"thresholds": scenario.thresholds}),
                    "gates": config.gates.model_copy(update=of_gates),
                    "judge": config.judge.model_copy(update={"calibrated_thresholds": False}),
                }
                own = config.model_copy(update=parts)
                self._held[case.id] = _Held(own, names.thresholds(own))

    def take(self, result: Result, document: Document) -> None:
        """Add a result. Spoilt conversations count as unscored."""
        case = document["metadata"].get("case") or self._case_of(result.unit.session_id or "")
        if (held := self._held.get(case or "")) is None:
            return
        held.found.take(result, document)
        if result.metric == CORRECT and result.why == Why.SIMULATOR_FAILED:
            for key in held.thresholds.keys() - {f"trial.{CORRECT}"}:
                held.found.tallies.setdefault(key, OutcomeCounts()).add(result.outcome, None, result.why)

    def gates(self, summary: Summary) -> Iterator[GateOutcome]:
        for case, held in self._held.items():
            held.found.agents_traces, held.found.has_sessions = summary.agents_traces, summary.has_sessions
            own = {failure.result for failure in held.found.failures}
            held.found.groups = tuple(
                group for group in summary.groups if own & {each.result for each in group.members}
            )
            for gate in checked(held.config, held.found):
                passed, text = gate.passed or self._no_fail, gate.text and f"scenario {case}: {gate.text}"
                yield replace(gate, key=f"{case}: {gate.key}", passed=passed, text=text)

    def show(self, out: Console) -> None:
        rows = [
            (case, key, number(held.found.values().get(key)), f"{least:g}", tally.scored, tally.missing, tally.whys)
            for case, held in self._held.items()
            for key, least in held.thresholds.items()
            for tally in [held.found.tallies.get(key, OutcomeCounts())]
        ]
        if rows:
            columns = ("scenario", "metric", "mean", "threshold", "scored", "unscored", "why unscored")
            print_table(columns, rows, "Scenarios", out)

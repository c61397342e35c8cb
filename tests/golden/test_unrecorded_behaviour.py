"""Unrecorded behaviour neither passes nor fails, in every model-free metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from random import Random

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score
from pandaeval_collector.config import load
from pandaeval_collector.pipeline.line.stored_traces import Part
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.drill.fault import NotApplicableError, plant
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace
from support.telemetry_faults import FAULTS
from tests.golden.test_drilled_captures import OWN, SETS, subjects

MOST = 3
ENOUGH = 0.5
CHECKS = frozenset({"coherence", "loop_detection", "response", "grounding", "tool_loop"})
NOT_EXPECTED = frozenset({"no_content", "not_sampled"})


@pytest.fixture(scope="module")
def scorer() -> Evaluator:
    return evaluator(load(None, {}))


def results(parts: list[Part], scorer: Evaluator) -> dict[str, Result]:
    with TraceFiles() as run:
        for logs, chunk in parts:
            run.add(Request(logs, chunk))
        return {f"{result.unit.level}.{result.metric}": result for result in replay(run, scorer)}


def coverage(result: Result) -> float:
    found = result.finding.coverage if isinstance(result.finding, Score) else None
    return 1.0 if found is None else found


def looked_at(found: Mapping[str, Result]) -> float:
    """Return the share of applicable checks with a score."""
    checks = [each for key, each in found.items() if key.partition(".")[2] in CHECKS and each.unit.level == "trace"]
    apply = [each for each in checks if each.outcome != "assumed" and each.why not in NOT_EXPECTED]
    return sum(each.outcome == "scored" for each in apply) / len(apply) if apply else 1.0


def _nobody_can_know(fault: str, trace: Trace) -> bool:
    """Return whether missing data is undetectable; excuses failures only."""
    return fault == "spans_lost" or (fault == "history_off" and trace.session_id is None)


@pytest.mark.parametrize("name", [SETS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in SETS[1:])])
def test_missing_data_neither_passes_nor_fails_a_run(name: str, scorer: Evaluator) -> None:
    seen: Counter[str] = Counter()
    for subject in islice(subjects(OWN / name), MOST):
        whole = results(list(subject.parts), scorer)
        for fault_name, fault in FAULTS.items():
            try:
                made = plant(fault, subject, Random(0))
            except NotApplicableError:
                continue
            seen[fault_name] += 1
            found = results(made.parts, scorer)
            for key, result in found.items():
                message = f"{fault_name}: {key} {result.label} ({result.finding.reason})"
                enough = looked_at(found) if result.unit.level == "session" else coverage(result)
                assert not result.success or enough >= ENOUGH, message
                if fault_name == "content_off":
                    assert not result.success, message
                if key in whole and whole[key].success and not _nobody_can_know(fault_name, subject.trace):
                    assert result.success is not False, message
    assert seen

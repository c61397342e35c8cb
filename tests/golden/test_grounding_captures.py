"""Fabricated facts are found in every dialect, without false alarms."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.scoring.metric import Texts, TraceContext
from pandaeval_collector.scoring.metrics.trace.grounding import METRIC
from pandaeval_lab.replay.files import Input, Request
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import Closing, build_trace
from pandaeval_otel.wire.splitting import split_logs, split_traces

OWN = Path(__file__).parent / "captures"
SHARED = Path(__file__).parents[2].parent / "shared" / "captures"
CONTEXT = TraceContext(Texts({}, (), "none", None), 0.7)


def traces(path: Path) -> list[Trace]:
    chunks: dict[bytes, list[tuple[bool, bytes]]] = defaultdict(list)
    for request in Input(str(path)).requests():
        assert isinstance(request, Request)
        for fragment in (split_logs if request.logs else split_traces)(request.data).fragments:
            chunks[fragment.trace_id].append((fragment.logs, fragment.chunk))
    found = (build_trace(gather(each), Closing(Trigger.FILE)) for each in chunks.values())
    return [trace for trace in found if trace is not None]


def outcomes(root: Path, scenario: str) -> dict[str, bool]:
    """Return whether each scored set has a failure."""
    if not root.is_dir():
        pytest.skip(f"no captures in {root}: they are not part of this checkout")
    found: dict[str, bool] = {}
    for path in sorted(root.glob(f"*/{scenario}.otlp.jsonl")):
        scores = [METRIC.evaluate(trace, CONTEXT) for trace in traces(path)]
        failed = [each.failed or each.value < 0.7 for each in scores if isinstance(each, Score)]
        if failed:
            found[path.parent.name] = any(failed)
    return found


@pytest.mark.parametrize(("scenario", "least"), [("hallucinates", 35), ("wrong_args", 35)])
def test_fabricated_facts_are_found(scenario: str, least: int) -> None:
    found = outcomes(SHARED, scenario)
    assert len(found) >= least
    assert sum(found.values()) >= 0.95 * len(found), [name for name, failed in found.items() if not failed]


@pytest.mark.parametrize("scenario", ["happy", "tool_error", "bad_schema", "handoff", "multi_turn"])
def test_runs_without_fabricated_facts_pass(scenario: str) -> None:
    found = outcomes(SHARED, scenario)
    assert found
    assert not any(found.values()), [name for name, failed in found.items() if failed]


@pytest.mark.parametrize("scenario", ["off_topic", "gives_up"])
def test_answers_without_values_are_not_scored(scenario: str) -> None:
    assert outcomes(SHARED, scenario) == {}


@pytest.mark.parametrize("scenario", ["good", "good_session", "repeated_answer", "tool_error"])
def test_own_captures_without_fabricated_facts_pass(scenario: str) -> None:
    found = outcomes(OWN, scenario)
    assert found
    assert not any(found.values()), [name for name, failed in found.items() if failed]

"""Equal runs in different instrumentations score equally, within 0.02."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace

OWN = Path(__file__).parent / "captures"
SHARED = Path(__file__).parents[2].parent / "shared" / "captures"
METRICS = frozenset({"trace.coherence", "trace.loop_detection", "trace.response", "trace.tool_loop"})
TOLERANCE = 0.02

Scores = dict[str, tuple[str, float | None]]


def _read(path: Path, evaluator: Evaluator) -> list[tuple[Trace, Scores]]:
    with TraceFiles() as run:
        for request in Input(str(path)).requests():
            run.add(request)
        traces = {trace.trace_id: trace for trace in run.traces()}
        scores: dict[str, Scores] = defaultdict(dict)
        for result in replay(run, evaluator):
            scores[result.unit.id][result.metric] = (result.outcome, result.score)
    return [(trace, scores[trace_id]) for trace_id, trace in traces.items()]


def _groups(root: Path) -> dict[tuple[object, ...], dict[str, Scores]]:
    """Return scores by set for each equal run."""
    evaluator = Evaluator(load("embedded"), EvaluatorSettings(enabled=METRICS))
    groups: dict[tuple[object, ...], dict[str, Scores]] = defaultdict(dict)
    for path in sorted(root.glob("*/*.otlp.jsonl")):
        for trace, scores in _read(path, evaluator):
            if trace.input and trace.output:
                results = sum(call.has_result for call in trace.tool_calls)
                key = (path.name, trace.input.strip(), trace.output.strip(), len(trace.tool_calls), results)
                groups[(*key, trace.session_id is None)][path.parent.name] = scores
    return groups


@pytest.mark.parametrize(
    "root", [pytest.param(OWN, id="own"), pytest.param(SHARED, id="shared", marks=pytest.mark.slow)]
)
def test_equal_runs_get_equal_scores_in_every_dialect(root: Path) -> None:
    if not root.is_dir():
        pytest.skip(f"no captures in {root.name}: they are not part of this checkout")
    compared = 0
    for key, by_set in _groups(root).items():
        for metric in {name for scores in by_set.values() for name in scores}:
            found = {name: scores[metric] for name, scores in by_set.items() if metric in scores}
            values = [score for _, score in found.values() if score is not None]
            compared += len(found) - 1
            assert len({outcome for outcome, _ in found.values()}) == 1, (key, metric, found)
            assert not values or max(values) - min(values) <= TOLERANCE, (key, metric, found)
    assert compared > 50, "too few scores were compared"

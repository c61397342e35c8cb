"""Result IDs change only with a metric's version.

python tests/golden/test_result_ids.py          # rewrites the IDs, for a new version or recording
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER.parents[1]), str(FOLDER.parents[1] / "collector")] if __name__ == "__main__" else []

from pandaeval_collector.analysis.embedding import load  # noqa: E402
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings  # noqa: E402
from pandaeval_lab.replay.files import Input  # noqa: E402
from pandaeval_lab.replay.replay import replay  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402

STORED = FOLDER / "result_ids.json"
METRICS = frozenset({"trace.coherence", "trace.loop_detection", "trace.tool_loop", "session.agent_reliability"})

Ids = dict[str, list[str]]


def recordings() -> list[Path]:
    return sorted((FOLDER / "captures").glob("*/*.otlp.jsonl"))


def name(recording: Path) -> str:
    return f"{recording.parent.name}/{recording.name.partition('.')[0]}"


def ids(recording: Path, evaluator: Evaluator) -> Ids:
    """Return sorted result IDs by metric and version."""
    found: Ids = {}
    with TraceFiles() as run:
        for request in Input(str(recording)).requests():
            run.add(request)
        for result in replay(run, evaluator):
            found.setdefault(f"{result.metric} {result.evaluator.version}", []).append(result.id)
    return {metric: sorted(found[metric]) for metric in sorted(found)}


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(load("embedded"), EvaluatorSettings(enabled=METRICS))


@pytest.mark.parametrize("recording", recordings(), ids=name)
def test_result_ids_are_unchanged(recording: Path, evaluator: Evaluator) -> None:
    stored: Ids = json.loads(STORED.read_text())[name(recording)]
    now = ids(recording, evaluator)
    assert now.keys() == stored.keys(), "a metric has a new version: rewrite the file and update CHANGELOG.md"
    assert now == stored


if __name__ == "__main__":
    made = Evaluator(load("embedded"), EvaluatorSettings(enabled=METRICS))
    everything = {name(recording): ids(recording, made) for recording in recordings()}
    STORED.write_text(json.dumps(everything, indent=0, sort_keys=True) + "\n")

"""Judged scores are stored with their results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store, people
from support.embedder import WordEmbedder
from support.judged import ScriptedConfidence, filed_here, stored
from support.made_traces import Composer


def results(store: Store) -> list[dict[str, Any]]:
    return [json.loads(row.body) for row in store.reads.results_after(0, 10_000)]


async def test_judge_scores_are_stored_with_the_values_of_their_results(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    judge = JudgeSettings("openai/small", delay=0.0, selection=Selection(share=0.6))
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence", "trace.response"}, judge=judge))
    line = Line(store.reads, evaluator)

    async def settle(decide: Callable[[], Conclusion]) -> None:
        await asyncio.wrap_future(store.commit(decide().changes))

    composer = Composer(4)
    for _ in range(30):
        store.commit(line.decide([stored(store, composer.trace())]).changes).result()
    assert people.judged(store.reads.connection()) == [], "no judge was called yet"
    desk = JudgeClient(ScriptedConfidence(), StoredMemory(store, Telemetry()))
    await Runner(
        store,
        Attempts(
            store,
            line.scores,
            evaluator,
            desk,
            filed_here(line, settle),
            Telemetry(),
        ),
    ).drain()

    scored = {each["trace_id"]: each for each in results(store) if each["outcome"] == "scored"}
    scored = {unit: each for unit, each in scored.items() if each["metric"] == "confidence"}
    rows = {row.unit: row for row, _ in people.judged(store.reads.connection())}
    assert 3 < len(rows) < 30
    assert rows.keys() == scored.keys()
    for unit, row in rows.items():
        result = scored[unit]
        assert (row.metric, row.score, row.passed) == ("trace.confidence", result["score"], result["success"])
        assert (row.agent, row.session, row.threshold) == ("helper", result["session_id"] or "", result["threshold"])
        assert (row.model, row.version) == (result["evaluator"]["model"], result["evaluator"]["version"])
        assert row.probability == result["metadata"]["inclusion_probability"] == 0.6
    store.close()

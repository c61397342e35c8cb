"""Turn results under their trace."""

from __future__ import annotations

import json
from pathlib import Path

from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, Store, WriteSet
from pandaeval_collector.store.finding import Finder
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.embedder import WordEmbedder

TRACE = bytes(range(16))
LOOP = Path(__file__).parents[2] / "golden" / "captures" / "langgraph_genai" / "tool_loop.otlp.jsonl"
KEY = "turn.helpfulness"


def _row(id_: str, span: str, score: float) -> ResultRow:
    body = json.dumps({"id": id_, "metric": "helpfulness", "level": "turn", "score": score}).encode()
    return ResultRow(id_, f"{TRACE.hex()}:{span}", KEY, 1, body, success=score >= 0.5, signal=score)


def test_each_turn_has_its_own_newest_result(tmp_path: Path) -> None:
    store = Store(tmp_path, durability="off")
    trace = DecidedTrace(TRACE, 1, False, "d", frozenset(), (), 0)
    listed = ListedRow(TRACE, 1, "desk", "shop", "", "", False, b'{"at": 1}')
    first, second = (_row(id_, span, score) for id_, span, score in (("a", "1" * 16, 0.2), ("b", "2" * 16, 0.9)))
    store.commit(WriteSet(traces=[trace], listed=[listed], results=[first, second])).result()
    assert {key: row.id for key, row in store.reads.newest_results({first.unit, second.unit}).items()} == {
        (first.unit, KEY): "a",
        (second.unit, KEY): "b",
    }
    store.commit(WriteSet(results=[_row("a", "1" * 16, 0.2), _row("c", "2" * 16, 0.1)])).result()
    finder = Finder(tmp_path)
    try:
        shown = finder.trace(TRACE)
        assert shown is not None
        assert sorted(result["id"] for result in shown.results.values()) == ["a", "c"], "the newest result of each turn"
        assert (shown.failures, shown.failed) == (2, True), "a turn that failed is a failure of its trace"
    finally:
        finder.close()
        store.close()


def test_repeated_calls_are_found_without_a_judge() -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"turn.tool_call_behavior_failure", "turn.helpfulness"}))
    with TraceFiles() as run:
        for request in Input(str(LOOP)).requests():
            run.add(request)
        [result] = replay(run, evaluator)
    assert (result.label, result.score, result.evaluator.kind) == ("repeated tool call", 0.0, "code")
    assert result.unit.id == f"{result.unit.trace_id}:{result.unit.span_id}"
    assert result.evaluator.model is None

"""What a running collector tells of its last drill."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.drill.scheduled import Drills, DrillSetup, stored_requests
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import Store
from pandaeval_collector.store.last_drill import last_drill
from pandaeval_otel.assembly import CloseRules
from support.drilled import requests
from support.embedder import WordEmbedder

SHARE = {"hits": 3, "n": 4, "share": 0.75, "low": 0.3, "high": 0.95}
NONE = {"hits": 0, "n": 0, "share": None, "low": None, "high": None}
TOLD = {
    "at": 1000.0,
    "good": 4,
    "faults": {
        "crash": {"family": "course", "n": 4, "noticed": SHARE, "by_metric": {"response": SHARE}},
        "content_off": {"family": "telemetry", "n": 4, "noticed": SHARE, "by_metric": {"response": SHARE}},
        "wrong_sum": {"family": "value", "n": 0, "noticed": NONE, "by_metric": {}},
    },
    "untouched": {"response": {**SHARE, "share": 0.25}, "tool_loop": {**SHARE, "share": 0.0}, "plan": NONE},
}


def gauges(folder: Path) -> dict[tuple[str, ...], float]:
    telemetry = Telemetry()
    setup = DrillSetup(folder, "embedded", EvaluatorSettings(), CloseRules(), 10, 2, 60.0, 0)
    Drills(setup, "0 3 * * *", {}, telemetry)
    return {
        (each.instrument.name, *(value for _, value in each.attributes)): each.value
        for each in telemetry.measures()
        if "drill" in each.instrument.name
    }


def test_the_last_drill_is_shown_with_zeros_and_without_shares_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "drill.json").write_text(json.dumps(TOLD))
    assert gauges(tmp_path) == {
        ("pandaeval.drill.copies", "crash"): 4.0,
        ("pandaeval.drill.copies", "content_off"): 4.0,
        ("pandaeval.drill.copies", "wrong_sum"): 0.0,
        ("pandaeval.drill.noticed", "any", "crash"): 0.75,
        ("pandaeval.drill.noticed", "response", "crash"): 0.75,
        ("pandaeval.drill.noticed", "tool_loop", "crash"): 0.0,
        ("pandaeval.drill.noticed", "plan", "crash"): 0.0,
        ("pandaeval.drill.flagged", "response"): 0.25,
        ("pandaeval.drill.flagged", "tool_loop"): 0.0,
    }


BROKEN = [None, "", "[]", "{}", '{"at": "x"}', '{"at": 1, "faults": 3, "untouched": {}}']
BROKEN += [
    '{"at": 1, "faults": {"crash": {}}, "untouched": {}}',
    '{"at": 1, "faults": {}, "untouched": {"response": {}}}',
]


@pytest.mark.parametrize("held", BROKEN)
def test_a_file_that_is_none_is_no_drill(tmp_path: Path, held: str | None) -> None:
    if held is not None:
        (tmp_path / "drill.json").write_text(held)
    assert last_drill(tmp_path) is None
    assert gauges(tmp_path) == {}


def test_of_the_newest_runs_whole_sessions_are_read(tmp_path: Path) -> None:
    given = [each.data for each in requests(3)]
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings())
    with closing(Store(tmp_path)) as store, FileRun(evaluator, store=store) as run:
        for each in requests(3):
            run.add(each)
        assert [*run.results()]
    assert len([*stored_requests(tmp_path)]) == len(given)
    newest = [each.data for each in stored_requests(tmp_path, 1)]
    assert sorted(newest) == sorted(given[-2:])

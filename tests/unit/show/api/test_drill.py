"""The last drill over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.drill.drill import Drill, chosen_faults
from pandaeval_collector.drill.fault import faults
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.show.api import Lookouts
from pandaeval_collector.show.api.work import Work
from support.drilled import requests
from support.embedder import WordEmbedder


def asked(folder: Path, last: dict[str, Any] | None) -> Any:
    work = Work(jobs=dict, spent=lambda: 0.0, drill=lambda: last, drill_schedule="0 3 * * *")
    lookouts = Lookouts(folder, work, ())
    try:
        return TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost").get("/api/v1/drill").json()
    finally:
        lookouts.close()


def test_before_there_is_one_it_says_when_one_comes(tmp_path: Path) -> None:
    empty = {"at_ms": None, "runs": 0, "good": 0, "faults": [], "untouched": {}}
    assert asked(tmp_path, None) == {"schedule": "0 3 * * *", **empty}


def test_what_a_drill_tells_is_shown_the_least_noticed_first(tmp_path: Path) -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings())
    chosen = chosen_faults(["empty_answer", "half_answer", "content_off", "wrong_handover"], faults())
    with Drill(lambda where: FileRun(evaluator, where=where), chosen) as drill:
        for request in requests(1):
            drill.add(request)
        last = {**drill.run().to_dict(), "at": 1000.5}
    told = asked(tmp_path, last)
    assert (told["at_ms"], told["runs"], told["good"]) == (1_000_500, 2, 2)
    assert [each["name"] for each in told["faults"]] == ["half_answer", "content_off", "empty_answer"]
    assert [each["right"] for each in told["faults"]] == ["noticed", "cannot tell", "noticed"]
    assert told["faults"][2]["noticed"]["hits"] == told["faults"][2]["by_metric"]["response"]["hits"] == 2
    assert told["untouched"]["response"] == last["untouched"]["response"]

"""Evaluation runs of a running collector: what they find, what they cost, and that they stay apart from live results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.collector import CollectorProcess
from support.judge import JudgeServer
from support.judged_files import behave, environ
from support.made_traces import Composer
from support.senders import HttpDoor

TRACES = 24
INLINE = ["trace.coherence", "trace.tool_loop", "trace.loop_detection", "session.agent_reliability"]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[JudgeServer, CollectorProcess]]:
    with JudgeServer(behave) as server:
        settings = {
            **environ(server),
            "PANDAEVAL_JUDGE__SAMPLE": "0",
            "PANDAEVAL_JUDGE__CONCURRENCY": "4",
            "PANDAEVAL_LATE__WINDOW": "2s",
        }
        with CollectorProcess(tmp_path_factory.mktemp("runs"), settings) as collector:
            collector.start()
            composer, door = Composer(7), HttpDoor(collector.http)
            for _ in range(TRACES):
                assert door.send(composer.trace().request()).acknowledged
            door.close()
            collector.until(lambda: collector.at_rest() and bool(collector.results()), "at rest", 120.0)
            yield server, collector


def api(collector: CollectorProcess) -> httpx.Client:
    return httpx.Client(base_url=f"{collector.http}/api/v1", timeout=120.0)


def start(collector: CollectorProcess, **body: Any) -> dict[str, Any]:
    with api(collector) as client:
        answer = client.post("/runs", json=body)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found


def ended(collector: CollectorProcess, run_id: str) -> dict[str, Any]:
    with api(collector) as client:
        collector.until(lambda: client.get(f"/runs/{run_id}").json()["ended_at"] is not None, "done", 120.0)
        found: dict[str, Any] = client.get(f"/runs/{run_id}").json()
        return found


def results(collector: CollectorProcess, run_id: str, limit: int = 7) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with api(collector) as client:
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": limit} | ({"cursor": cursor} if cursor else {})
            page = client.get(f"/runs/{run_id}/results", params=query).json()
            found += page["items"]
            cursor = page["next"]
    return found


def content(result: dict[str, Any]) -> dict[str, Any]:
    """What does not tell when, how or in which run it was said."""
    left_out = ("run_id", "time", "duration_ms", "trigger", "revision", "final")
    return {key: value for key, value in result.items() if key not in left_out}


def test_a_run_of_metrics_without_a_model_says_what_was_said_live(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    _, collector = judged
    live, series = collector.standing(), collector.counts()
    run = ended(collector, start(collector, metrics=INLINE, name="again")["id"])
    assert (run["traces"], run["done"], run["failed"], run["error"]) == (TRACES, TRACES, 0, "")
    found = results(collector, run["id"])
    assert len(found) == sum(sum(counts.values()) for counts in run["results"].values())
    assert {each["run_id"] for each in found} == {run["id"]}
    said = {
        (each["session_id"] if each["level"] == "session" else each["trace_id"], f"{each['level']}.{each['metric']}"): (
            content(each)
        )
        for each in found
    }
    assert {key for _, key in said} == set(INLINE)
    traces = {key: each for key, each in said.items() if key[1].startswith("trace.")}
    assert traces == {key: content(each) for key, each in live.items() if key[1] in INLINE and key in traces}
    assert len(traces) == len([key for key in live if key[1] in INLINE and key[1].startswith("trace.")])

    again = ended(collector, start(collector, metrics=INLINE)["id"])
    assert [content(each) for each in results(collector, again["id"])] == [content(each) for each in found]
    with api(collector) as client:
        compared = client.get("/runs/compare", params={"a": run["id"], "b": again["id"]}).json()
    assert {each["metric"]: each["differing"] for each in compared["metrics"]} == dict.fromkeys(INLINE, 0)
    assert all(each["same_series"] and each["agreement"] in (1.0, None) for each in compared["metrics"])
    assert collector.standing() == live, "nothing of a run is among live results"
    assert collector.counts()["evaluations", "scored", ""] == series["evaluations", "scored", ""]

"""The overview, and rates, worst first."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.overview import window_rates
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.show.view.unscored import missing
from pandaeval_collector.store import DecidedTrace, ListedRow, SessionTraceRow, Store, WriteSet
from pandaeval_collector.store.series import SeriesLabels
from support.api import ReadInterfaces
from support.results import CODE, result

GOOD, BAD = Score(0.75), Score(0.25)
NO_THRESHOLD: dict[str, Any] = {"threshold": None}


class House:
    """A store and its overview."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, "off")
        self.store.spending.reserve(1.25, None, self.store.spending.today(time.time())).result()
        self.store.jobs.counts = lambda: {"due": 3, "failed": 1}  # type: ignore[method-assign]
        self._labels = SeriesLabels()
        self._emitter = Emitter(labels=self._labels)
        self._made = 0
        work = Work(
            self.store,
            judge="openai/gpt-4o-mini",
            daily_usd=5.0,
            metrics=lambda: [(each, 0.125) for each in registry(()).values()],
            page=PageWork({"Jaeger": "http://localhost/{trace_id}"}),
            component_errors=self._component_errors,
            sinks_down=self._sinks_down,
            store_limit=1 << 30,
        )
        self.down: list[str] = []
        self.raised: dict[tuple[str, str], int] = {}
        self.lookouts = ReadInterfaces(folder, work, ())
        self.client = TestClient(Starlette(routes=self.lookouts.routes), base_url="http://localhost")

    def add(self, times: int, finding: Finding, metric: str = "coherence", **changes: Any) -> None:
        """Commit results."""
        ids = [f"{metric} {self._made + at}" for at in range(times)]
        self._made += times
        changes = {"evaluator": CODE, **changes}
        written = WriteSet()
        self._emitter.add([result(metric, finding, id=id_, **changes) for id_ in ids], (), written)
        self.store.commit(written).result()

    async def _component_errors(self) -> Mapping[tuple[str, str], int]:
        return self.raised

    async def _sinks_down(self) -> list[str]:
        return self.down

    def overview(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get("/api/v1/overview").json()
        return found


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.lookouts.close()
    made.store.close()


def test_metrics_with_results_are_listed(house: House) -> None:
    house.add(2, GOOD)
    house.add(1, BAD, agent="booker", service="library")
    house.add(1, Unscored(Why.TIMEOUT), "coherence", level="turn")
    house.add(1, Assumed("nothing to do"), "agent_reliability", level="session")
    assert house.overview()["metrics"] == ["session.agent_reliability", "trace.coherence", "turn.coherence"]


def test_rates_are_ordered_by_failures_then_by_name() -> None:
    given = (("b", "y", 1), ("a", "z", 1), ("a", "x", 1), ("z", "z", 5), ("c", "a", 0), ("d", "a", 2))
    counted = [(f"trace.{metric}", agent, "failed", failed) for metric, agent, failed in given]
    order = [(rate.metric, rate.agent, rate.failed) for rate in window_rates(counted) if rate.agent is not None]
    assert order == [("z", "z", 5), ("d", "a", 2), ("a", "x", 1), ("a", "z", 1), ("b", "y", 1), ("c", "a", 0)]


def test_missing_scores_are_grouped_by_reason_with_advice_most_frequent_first() -> None:
    found = missing(
        [
            ("trace.confidence", {"timeout": 3, "shutdown": 1}),
            ("trace.plan_quality", {"timeout": 1}),
            ("trace.grounding", {"no_content": 5}),
            ("session.agent_reliability", {"no_content": 3}),
        ]
    )
    assert [(each["why"], each["count"], [*each["metrics"].items()]) for each in found] == [
        ("no_content", 8, [("trace.grounding", 5), ("session.agent_reliability", 3)]),
        ("timeout", 4, [("trace.confidence", 3), ("trace.plan_quality", 1)]),
        ("shutdown", 1, [("trace.confidence", 1)]),
    ]
    assert [each["cure"].split(":")[0].split(".")[0] for each in found] == [
        "These runs lack content",
        "The judge or the metric took too long",
        "The collector stopped before this evaluation",
    ]


def test_the_overview_has_names_jobs_spending_links_and_operations(house: House) -> None:
    changes = WriteSet()
    for number, agent in ((1, "helper"), (2, "booker"), (3, "")):
        id_ = bytes([number]) * 16
        changes.traces.append(DecidedTrace(id_, 1, True, "d", frozenset(), [], 0))
        changes.session_traces.append(SessionTraceRow(id_, "", number, number, b"{}"))
        facts = orjson.dumps({"id": id_.hex(), "at": number})
        changes.listed.append(ListedRow(id_, number, agent, "shop", "live", "", False, facts))
    house.store.commit(changes).result()
    found = house.overview()
    assert found["metrics"] == []
    assert (found["agents"], found["services"], found["environments"]) == (["booker", "helper"], ["shop"], ["live"])
    assert (found["judge"], found["jobs"]) == ("openai/gpt-4o-mini", {"due": 3, "failed": 1})
    assert (found["spent_usd"], found["daily_usd"], found["page"]) == (1.25, 5.0, True)
    assert found["links"] == {"Jaeger": "http://localhost/{trace_id}"}
    can = ["/annotations", "/annotations/undo", "/delete", "/incidents/state", "/labels/draw"]
    assert found["can"] == [f"POST {path}" for path in can]


def test_the_data_directory_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = House(Path("data"))
    assert made.overview()["data"] == str(tmp_path / "data")
    made.lookouts.close()
    made.store.close()


def test_every_metric_is_listed_with_its_threshold(house: House) -> None:
    found = {each["key"]: each for each in house.client.get("/api/v1/metrics").json()}
    assert found.keys() == registry(()).keys()
    for key, metric in registry(()).items():
        assert found[key] == {
            "key": key,
            "name": metric.name,
            "level": metric.level,
            "kind": metric.kind,
            "question": metric.question,
            "needs": metric.needs,
            "threshold": 0.125,
        }


def test_component_errors_are_listed_most_frequent_first(house: House) -> None:
    house.raised |= {("metric", "trace.brevity"): 1, ("dialect", "skylark"): 3, ("dialect", "plover"): 1}
    assert [tuple(each.values()) for each in house.overview()["component_errors"]] == [
        ("dialect", "skylark", 3),
        ("dialect", "plover", 1),
        ("metric", "trace.brevity", 1),
    ]


def test_a_full_store_is_reported(house: House) -> None:
    assert house.overview()["store_full"] is None
    house.store.reads.used_bytes = lambda: 2 << 30  # type: ignore[method-assign]
    assert house.overview()["store_full"].startswith("the store holds 2048.0 MiB, and store.max_bytes is 1024.0 MiB:")


def test_a_failing_judge_and_an_unreachable_sink_are_reported(house: House) -> None:
    found = house.overview()
    assert (found["judge_error"], found["sinks_down"]) == (None, [])
    chain = "InternalServerError: litellm.InternalServerError: InternalServerError: OpenAIException - "
    house.store.jobs.last_error = lambda: f"{chain}connection refused"  # type: ignore[method-assign]
    house.down.append("otlp")
    found = house.overview()
    assert (found["judge_error"], found["sinks_down"]) == ("connection refused", ["otlp"])

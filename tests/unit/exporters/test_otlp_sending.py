"""Exporter reactions to sink answers over gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import Surroundings, zero_first
from pandaeval_collector.exporters._otlp import build as exporting
from pandaeval_collector.exporters._otlp.build import _MAX_BYTES, _MAX_ROWS, ItemExporter, MetricsExporter, build
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.exporters.otlp import Otlp
from pandaeval_collector.exporters.zero_first import own_points
from pandaeval_collector.store import Store, WriteSet
from support.otlp_sink import INVALID, TAKEN, UNIMPLEMENTED, Answer, OtlpSink, items, too_large
from support.results import result


@dataclass(frozen=True)
class Item:
    seq: int
    body: bytes


@dataclass
class Line:
    """A sink, its exporters and their store."""

    sink: OtlpSink
    logs: ItemExporter
    metrics: MetricsExporter
    telemetry: Telemetry
    store: Store

    def score(self, *agents: str) -> None:
        """Add a result for each agent."""
        changes = WriteSet()
        Emitter().add([result(id=f"r{agent}", agent=agent) for agent in agents], (), changes)
        self.store.commit(changes).result()

    def evaluations(self) -> list[float]:
        """Return the sent result values in order."""
        found = self.sink.metrics("pandaeval.evaluations")
        return [point.as_double for metric in found for point in metric.sum.data_points]

    def dropped(self) -> dict[tuple[str, ...], float]:
        """Return the counts of dropped metrics by labels."""
        return {
            tuple(value for _, value in each.attributes): each.value
            for each in self.telemetry.measures()
            if each.instrument.name == "pandaeval.exporter.items"
        }


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Line]:
    store, sink, telemetry = Store(tmp_path, "off"), OtlpSink(), Telemetry()
    port, _ = await sink.listen()
    settings = Otlp.model_validate({"endpoint": f"http://127.0.0.1:{port}", "traces": {"enabled": False}})
    logs, series = build(settings, Surroundings(store, telemetry, {}, "me"))
    assert isinstance(logs, ItemExporter)
    assert isinstance(series, MetricsExporter)
    await logs.open("")
    await series.open()
    yield Line(sink, logs, series, telemetry, store)
    await logs.close()
    await series.close()
    await sink.hang_up()
    store.close()


def rows(count: int, size: int = 1) -> list[Item]:
    return [
        Item(n, LogRecord(time_unix_nano=n + 1, body={"string_value": "x" * size}).SerializeToString())
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [2, 3, 9])
async def test_a_too_large_batch_is_halved_until_all_items_arrive(line: Line, count: int) -> None:
    line.sink.always["logs"] = too_large(1)
    left = rows(count)
    while left:
        sent = await line.logs.export(left)
        assert not any(sent.dropped.values())
        assert sent.rows == 1
        left = left[sent.rows :]
    assert [record.time_unix_nano for record in line.sink.logs()] == [n + 1 for n in range(count)]


async def test_batch_size_grows_again_after_each_success(line: Line) -> None:
    line.sink.answers["logs"].append(too_large(4))
    assert [(await line.logs.export(rows(8))).rows for _ in range(2)] == [4, 8]
    assert (await line.logs.export(rows(_MAX_ROWS + 1))).rows == 16
    for _ in range(6):
        await line.logs.export(rows(1))
    assert (await line.logs.export(rows(_MAX_ROWS + 1))).rows == _MAX_ROWS


async def test_a_rejected_batch_is_dropped_and_counted_by_reason(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    line.sink.answers["logs"].append(INVALID)
    sent = await line.logs.export(rows(3))
    assert (sent.rows, sent.dropped) == (3, {"invalid_argument": 3})
    assert "otlp.logs: 3 items are dropped" in caplog.text
    line.sink.always["logs"] = too_large(0)
    sent = await line.logs.export(rows(1))
    assert (sent.rows, sent.dropped) == (1, {"too_large": 1})


async def test_partially_rejected_items_are_counted(line: Line) -> None:
    line.sink.answers["logs"].append(Answer(rejected=2, message="no"))
    sent = await line.logs.export(rows(5))
    assert (sent.rows, sent.dropped) == (5, {"rejected_by_sink": 2})


async def test_items_are_not_sent_again_if_the_sink_does_not_serve_the_signal(line: Line) -> None:
    line.sink.always["logs"] = UNIMPLEMENTED
    for _ in range(2):
        sent = await line.logs.export(rows(3))
        assert (sent.rows, sent.dropped) == (3, {"unimplemented": 3})
    assert line.logs.off
    assert len(line.sink.seen["logs"]) == 1


async def test_a_batch_is_split_at_the_byte_limit(line: Line) -> None:
    assert (await line.logs.export(rows(3, _MAX_BYTES // 2 - 100))).rows == 2
    assert (await line.logs.export(rows(2, _MAX_BYTES + 1))).rows == 1


async def test_opening_ignores_the_stored_position(line: Line) -> None:
    assert await line.logs.open("5") == ""


async def test_all_rows_of_a_signal_that_is_not_served_are_counted_as_dropped(line: Line) -> None:
    line.sink.answers["logs"].append(UNIMPLEMENTED)
    await line.logs.export(rows(1))
    sent = await line.logs.export(rows(4))
    assert (sent.rows, sent.dropped) == (4, {"unimplemented": 4})


async def test_a_single_too_large_row_is_dropped_and_the_next_row_is_sent(line: Line) -> None:
    line.sink.answers["logs"] += [too_large(0), too_large(0)]
    first = await line.logs.export(rows(2))
    assert (first.rows, first.dropped) == (1, {"too_large": 1})
    assert (await line.logs.export(rows(1))).dropped == {"rejected_by_sink": 0}


class TestMetrics:
    @pytest.mark.parametrize(
        ("answer", "reason", "dropped", "log_text"),
        [
            (Answer(rejected=2, message="no"), "rejected_by_sink", 2, ": the sink discarded 2 of 6 items: no"),
            (INVALID, "invalid_argument", 6, ": 6 items are dropped"),
            (UNIMPLEMENTED, "unimplemented", 6, " is switched off"),
        ],
    )
    async def test_dropped_points_are_counted_by_reason(
        self, line: Line, caplog: pytest.LogCaptureFixture, answer: Answer, reason: str, dropped: int, log_text: str
    ) -> None:
        assert len(own_points(line.telemetry)) == 12
        line.metrics._max_items = 6
        line.sink.answers["metrics"].append(answer)
        await line.metrics.send()
        assert line.dropped() == {("otlp", "dropped", reason, "metrics"): dropped}
        assert f"otlp.metrics{log_text}" in caplog.text
        assert len(line.sink.seen["metrics"]) == (1 if answer is UNIMPLEMENTED else 2), "the remaining points are sent"

    async def test_all_points_of_an_export_have_the_same_time(self, line: Line) -> None:
        """With different times, Prometheus rejects whole requests that arrive out of order."""
        line.metrics._max_items = 3
        line.score("later", "latest")
        await line.metrics.send()
        sent = [Metric.FromString(item) for item in line.sink.items("metrics")]
        points = [
            point for each in sent for kind in (each.sum, each.gauge, each.histogram) for point in kind.data_points
        ]
        assert len(points) > 12
        assert len({point.time_unix_nano for point in points}) == 1

    async def test_metrics_are_not_sent_again_if_the_sink_does_not_serve_them(self, line: Line) -> None:
        line.sink.always["metrics"] = UNIMPLEMENTED
        line.score("a")
        for _ in range(2):
            await line.metrics.send()
        assert line.metrics.off
        assert len(line.sink.seen["metrics"]) == 1

    async def test_a_request_has_at_most_500_points(self, line: Line) -> None:
        for at in range(600):
            line.telemetry.add("pandaeval.items", f"outcome {at}")
        await line.metrics.send()
        found = [
            sum(len(Metric.FromString(item).sum.data_points) for item in items(request))
            for request in line.sink.requests["metrics"]
        ]
        assert found == [500, 112], "600 points, and 12 points of the start"

    async def test_points_have_the_time_of_the_export(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exporting, "time", SimpleNamespace(time=lambda: 4_000_000_000.5))
        line.score("a")
        await line.metrics.send()
        for name in ("pandaeval.spans", "pandaeval.evaluations"):
            [metric] = line.sink.metrics(name)
            assert {each.time_unix_nano for each in metric.sum.data_points} == {int(4_000_000_000.5 * 1e9)}
        [noted] = line.store.reads.tally.page("otlp", "pandaeval.evaluations")
        assert noted.shown_at == 4_000_000_000.5

    @pytest.mark.parametrize(
        ("lasts", "values"),
        [
            ([False], [0.0]),
            ([False, False], [0.0, 0.0]),
            ([True], [0.0, 1.0]),
            ([False, True], [0.0, 0.0]),
        ],
    )
    async def test_last_send_adds_the_value_only_of_series_that_it_shows_first(
        self, line: Line, lasts: list[bool], values: list[float]
    ) -> None:
        line.score("a")
        for last in lasts:
            await line.metrics.send(last)
        assert line.evaluations() == values

    @pytest.mark.parametrize("agents", ["ab", "ba"])
    async def test_last_send_adds_the_values_of_new_series_on_any_page(
        self, line: Line, monkeypatch: pytest.MonkeyPatch, agents: str
    ) -> None:
        monkeypatch.setattr(zero_first, "PAGE", 1)
        for agent in agents:
            line.score(agent)
            await line.metrics.send(last=agent == agents[-1])
        assert line.evaluations()[-2:] == [1.0, 1.0]

    async def test_a_rejected_zero_does_not_count_as_shown(self, line: Line) -> None:
        line.score("a")
        line.sink.answers["metrics"] += [TAKEN, INVALID, INVALID]
        await line.metrics.send()
        assert line.evaluations() == []
        await line.metrics.send(last=True)
        assert line.evaluations() == [0.0, 1.0]

    async def test_a_too_large_request_is_halved_and_all_points_arrive_once(self, line: Line) -> None:
        line.sink.always["metrics"] = too_large(1)
        line.score(*"abcde")
        await line.metrics.send()
        assert line.metrics._max_items == 6
        assert {len(items(request)) for request in line.sink.requests["metrics"]} == {1}
        own = [len(line.sink.metrics(name)[0].sum.data_points) for name in ("pandaeval.spans", "pandaeval.logs")]
        assert own == [6, 6]
        assert line.evaluations() == [0.0] * 5
        assert line.dropped() == {}

"""What an exporter does with each answer of a sink, over gRPC on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters._otlp.build import _MAX_BYTES, _MAX_ROWS, ItemExporter, build
from pandaeval_collector.exporters._otlp.metrics import MetricsExporter
from pandaeval_collector.exporters._otlp.settings import Otlp
from pandaeval_collector.exporters._protocol import Surroundings
from pandaeval_collector.store import Store
from support.otlp_sink import INVALID, UNIMPLEMENTED, Answer, OtlpSink, items, too_large


@dataclass(frozen=True)
class Item:
    seq: int
    body: bytes


@dataclass
class Line:
    """A sink and the exporters that send to it."""

    sink: OtlpSink
    logs: ItemExporter
    metrics: MetricsExporter
    telemetry: Telemetry


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Line]:
    store, sink, telemetry = Store(tmp_path, "off"), OtlpSink(), Telemetry()
    port, _ = await sink.listen()
    settings = Otlp.model_validate({"endpoint": f"http://127.0.0.1:{port}", "traces": {"enabled": False}})
    logs, metrics = build(settings, Surroundings(store, telemetry, {}, "me"))
    assert isinstance(logs, ItemExporter)
    assert isinstance(metrics, MetricsExporter)
    await logs.open("")
    await metrics.open()
    yield Line(sink, logs, metrics, telemetry)
    await logs.close()
    await metrics.close()
    await sink.hang_up()
    store.close()


def rows(count: int, size: int = 1) -> list[Item]:
    return [
        Item(n, LogRecord(time_unix_nano=n + 1, body={"string_value": "x" * size}).SerializeToString())
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [2, 3, 9])
async def test_a_batch_that_is_too_large_is_halved_and_all_arrives(line: Line, count: int) -> None:
    line.sink.always["logs"] = too_large(1)
    left = rows(count)
    while left:
        sent = await line.logs.export(left)
        assert not any(sent.dropped.values())
        assert sent.rows == 1
        left = left[sent.rows :]
    assert [record.time_unix_nano for record in line.sink.logs()] == [n + 1 for n in range(count)]


async def test_the_size_grows_again_after_a_success(line: Line) -> None:
    line.sink.answers["logs"].append(too_large(4))
    assert [(await line.logs.export(rows(8))).rows for _ in range(2)] == [4, 8]
    assert (await line.logs.export(rows(_MAX_ROWS + 1))).rows == 16
    for _ in range(6):
        await line.logs.export(rows(1))
    assert (await line.logs.export(rows(_MAX_ROWS + 1))).rows == _MAX_ROWS


async def test_a_refusal_drops_with_its_reason(line: Line) -> None:
    line.sink.answers["logs"].append(INVALID)
    sent = await line.logs.export(rows(3))
    assert (sent.rows, sent.dropped) == (3, {"invalid_argument": 3})
    line.sink.always["logs"] = too_large(0)
    sent = await line.logs.export(rows(1))
    assert (sent.rows, sent.dropped) == (1, {"too_large": 1})


async def test_what_a_sink_rejects_of_a_batch_is_counted(line: Line) -> None:
    line.sink.answers["logs"].append(Answer(rejected=2, message="no"))
    sent = await line.logs.export(rows(5))
    assert (sent.rows, sent.dropped) == (5, {"rejected_by_sink": 2})


async def test_a_sink_that_does_not_serve_the_signal_is_left_alone(line: Line) -> None:
    line.sink.always["logs"] = UNIMPLEMENTED
    for _ in range(2):
        sent = await line.logs.export(rows(3))
        assert (sent.rows, sent.dropped) == (3, {"unimplemented": 3})
    assert line.logs.off
    assert len(line.sink.seen["logs"]) == 1


async def test_rows_beyond_the_byte_limit_go_in_parts(line: Line) -> None:
    assert (await line.logs.export(rows(3, _MAX_BYTES // 2 - 100))).rows == 2
    assert (await line.logs.export(rows(2, _MAX_BYTES + 1))).rows == 1


async def test_metrics_that_are_rejected_are_counted_under_their_reason(line: Line) -> None:
    line.telemetry.add("pandaeval.spans", "accepted", 5)
    line.sink.answers["metrics"].append(Answer(rejected=2, message="no"))
    await line.metrics.send()
    dropped = {
        dict(each.attributes).get("reason", dict(each.attributes).get("pandaeval.reason")): each.value
        for each in line.telemetry.measures()
        if each.instrument.name == "pandaeval.exporter.items" and each.value
    }
    assert dropped == {"rejected_by_sink": 2}


async def test_metrics_that_are_too_many_are_halved(line: Line) -> None:
    line.sink.always["metrics"] = too_large(1)
    line.telemetry.add("pandaeval.spans", "accepted", 5)
    line.telemetry.add("pandaeval.traces", "decided", 2)
    await line.metrics.send()
    assert len(line.sink.requests["metrics"]) > 1
    assert {len(items(request)) for request in line.sink.requests["metrics"]} == {1}

"""Exporters built from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import Surroundings
from pandaeval_collector.exporters._otlp.build import _MAX_BYTES, ItemExporter, MetricsExporter, _fitting, build
from pandaeval_collector.exporters._otlp.transport import VERSION, Envelope, GrpcTransport, HttpTransport, Trust
from pandaeval_collector.exporters.otlp import Otlp
from pandaeval_collector.store import OutboxRow, Store
from pandaeval_otel.wire.splitting import OWN_SCOPE
from support.otlp_sink import attributes

TELEMETRY = Telemetry()
Build = Callable[..., list[Any]]


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Build]:
    store = Store(tmp_path, "off")

    def make(**settings: Any) -> list[Any]:
        around = Surroundings(store, TELEMETRY, {"HEADERS": "authorization=Bearer%20x,a=b"}, "me")
        return list(build(Otlp.model_validate(settings), around))

    yield make
    store.close()


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, []),
        ({"endpoint": "sink:4317"}, ["otlp.logs", "otlp.traces", "otlp.metrics"]),
        ({"endpoint": "sink:4317", "logs": {"enabled": False}}, ["otlp.traces", "otlp.metrics"]),
        ({"traces": {"endpoint": "sink:4317"}}, ["otlp.traces"]),
        ({"logs": {"endpoint": "sink:4317", "enabled": False}}, []),
        ({"logs": {"endpoint": "sink:4317"}, "metrics": {"endpoint": "sink:4317"}}, ["otlp.logs", "otlp.metrics"]),
    ],
)
def test_each_signal_with_an_endpoint_has_an_exporter(built: Build, settings: dict[str, Any], names: list[str]) -> None:
    assert [each.name for each in built(**settings)] == names


@pytest.mark.parametrize(
    ("protocol", "kind", "address"),
    [("grpc", GrpcTransport, "sink:4317"), ("http/protobuf", HttpTransport, "sink:4318")],
)
def test_the_protocol_decides_transport_and_port_of_all_signals(
    built: Build, protocol: str, kind: type, address: str
) -> None:
    found = built(endpoint="sink", protocol=protocol, certificate="/ca.pem")
    assert [type(each) for each in found] == [ItemExporter, ItemExporter, MetricsExporter]
    for each in found:
        sent = each._transport
        assert (type(sent), sent._target.address, sent._trust) == (kind, address, Trust("/ca.pem"))


def test_all_settings_reach_the_exporters(built: Build) -> None:
    logs, traces, metrics = built(
        endpoint="https://sink:4318/base",
        protocol="http/protobuf",
        headers_env="HEADERS",
        certificate="/ca.pem",
        client_certificate="/me.pem",
        client_key="/me.key",
        metrics_interval="30s",
        traces={"endpoint": "http://other/own"},
    )
    for each, url in (
        (logs, "https://sink:4318/base/v1/logs"),
        (traces, "http://other:80/own"),
        (metrics, "https://sink:4318/base/v1/metrics"),
    ):
        assert each._transport._target.url == url
        assert each._transport._target.headers == (("authorization", "Bearer x"), ("a", "b"))
        assert each._transport._trust == Trust("/ca.pem", "/me.pem", "/me.key")
    assert (metrics.interval, metrics._series._hold_s, metrics._series._reader) == (30.0, 27.0, "otlp")
    assert metrics._telemetry is TELEMETRY
    assert [*metrics._series.pages(0.0)] == [], "the series of the empty store"
    assert logs._envelope is traces._envelope is metrics._envelope
    [resourced] = ExportLogsServiceRequest.FromString(logs._envelope.request([b""])).resource_logs
    assert attributes(resourced.resource.attributes)["service.instance.id"] == "me"


@pytest.mark.parametrize(("insecure", "secure"), [(True, False), (False, True)])
def test_an_endpoint_without_a_scheme_uses_tls_unless_insecure(built: Build, insecure: bool, secure: bool) -> None:
    assert {each._transport._target.secure for each in built(endpoint="sink:4317", insecure=insecure)} == {secure}


@pytest.mark.parametrize("settings", [{}, {"headers_env": "UNSET"}])
def test_no_headers_are_sent_if_headers_env_is_missing_or_unset(built: Build, settings: dict[str, Any]) -> None:
    assert {each._transport._target.headers for each in built(endpoint="sink:4317", **settings)} == {()}


@pytest.mark.parametrize(("instance", "named"), [("me", {"service.instance.id": "me"}), ("", {})])
def test_a_request_names_the_sender_and_contains_the_items_unchanged(instance: str, named: dict[str, str]) -> None:
    items = [LogRecord(event_name=name).SerializeToString() for name in ("one", "two")]
    [resourced] = ExportLogsServiceRequest.FromString(Envelope(instance).request(iter(items))).resource_logs
    assert attributes(resourced.resource.attributes) == {
        "service.name": "pandaeval",
        "service.version": VERSION,
        **named,
    }
    [scoped] = resourced.scope_logs
    assert resourced.schema_url == scoped.schema_url == "https://opentelemetry.io/schemas/1.38.0"
    assert (scoped.scope.name, scoped.scope.version) == (OWN_SCOPE, VERSION)
    assert [each.event_name for each in scoped.log_records] == ["one", "two"]


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([], 0),
        ([_MAX_BYTES], 1),
        ([_MAX_BYTES + 1], 1),
        ([_MAX_BYTES - 1, 1], 2),
        ([_MAX_BYTES - 1, 2], 1),
        ([_MAX_BYTES - 2, 1, 1, 1], 3),
        ([1, _MAX_BYTES], 1),
        ([_MAX_BYTES + 1, 1], 1),
    ],
)
def test_a_request_has_as_many_rows_as_fit_and_at_least_one(sizes: list[int], taken: int) -> None:
    rows = [OutboxRow("logs", b"x" * size, at) for at, size in enumerate(sizes)]
    assert _fitting(rows) == rows[:taken]

"""``pandaeval doctor`` without a store, and with a full or damaged store."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.store import Chunk, Store, StoreFullError
from pandaeval_lab.cli.doctor import _exporters


def test_a_named_store_must_exist(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["doctor", "--store", str(tmp_path / "nowhere")])
    assert outcome.exit_code == 1
    assert f"store: there is no store in {tmp_path / 'nowhere'}" in outcome.output
    assert "name the data directory of a collector" in outcome.output


STATES = """# TYPE pandaeval_exporter_state gauge
pandaeval_exporter_state{pandaeval_exporter="otlp",pandaeval_signal="logs"} 1.0
pandaeval_exporter_state{pandaeval_exporter="otlp",pandaeval_signal="metrics"} -1.0
pandaeval_exporter_state{pandaeval_exporter="otlp",pandaeval_signal="traces"} 0.0
"""


def test_exporters_whose_sink_refuses_a_signal_or_is_down_are_reported() -> None:
    [refused, down] = _exporters(STATES, "127.0.0.1:4329")
    assert (refused.state, refused.text) == ("note", "exporters.otlp: the sink accepts no metrics")
    assert refused.cure.startswith("set exporters.otlp.metrics.enabled: false; after a restart, Prometheus can scrape")
    assert (down.state, down.text) == ("wrong", "exporters.otlp: traces cannot be delivered, and wait in the store")


def test_the_default_store_is_created_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app, ["doctor"])
    assert outcome.exit_code == 0, outcome.output
    assert "the collector creates it at its first start" in outcome.output


def test_a_locked_store_is_not_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    with closing(Store(tmp_path, "off", 1 << 30)):
        pass
    monkeypatch.setattr("pandaeval_collector.cli._config.connect", locked)
    outcome = CliRunner().invoke(app, ["doctor", "--store", str(tmp_path)])
    assert outcome.exit_code == 1
    assert "database is locked (try again in a moment)" in outcome.output
    assert "check its permissions, and whether another program uses it" in outcome.output
    assert "#upgrade" not in outcome.output


@pytest.mark.parametrize("full", [False, True])
def test_doctor_reports_a_full_store(tmp_path: Path, full: bool) -> None:
    folder, most = tmp_path / "data", 2 << 20
    with closing(Store(folder, "off", most)) as store:

        def put() -> None:
            (request := ExportTraceServiceRequest()).resource_spans.add().schema_url = os.urandom(50_000).hex()
            data = request.SerializeToString()
            store.append([Chunk(store.next_chunk_id(), b"1" * 16, False, 1, 1, data)]).result()

        put()
        if full:
            with pytest.raises(StoreFullError):
                [put() for _ in range(50)]
    file = tmp_path / "config.yaml"
    file.write_text(f"store: {{path: {folder}, max_bytes: 2MiB}}\nserver: {{health: '127.0.0.1:9'}}\n")
    outcome = CliRunner().invoke(app, ["doctor", "--config", str(file)])
    assert outcome.exit_code == full, outcome.output
    told = "wrong  store: full, and refuses spans: the store holds 2."
    assert (told in outcome.output) == full
    assert ("and store.max_bytes is 2.0 MiB\n       raise it, or shorten late.window" in outcome.output) == full


@pytest.mark.parametrize("logs", [False, True])
def test_a_chunk_that_is_no_protobuf_is_reported_and_the_rest_is_checked(tmp_path: Path, logs: bool) -> None:
    with closing(Store(tmp_path, "off", 1 << 30)) as store:
        store.append([Chunk(store.next_chunk_id(), b"\x01" * 16, logs, 1, 1, b"\xff\xff\xff")]).result()
    outcome = CliRunner().invoke(app, ["doctor", "--store", str(tmp_path)])
    assert outcome.exit_code == 1, outcome.output
    assert f"wrong  store: the spans of trace {'01' * 16} cannot be read: " in outcome.output
    assert f"restore a backup, or delete the trace: `pandaeval delete --trace {'01' * 16}`" in outcome.output
    assert outcome.output.endswith("ok     configuration: valid\n1 thing is wrong\n")

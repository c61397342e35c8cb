"""Formats, compressions and errors of files."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_lab.replay.files import BadLine, Input, Request, UnusableInputError
from support.wire_bytes import varint

LINE = json.dumps(
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a" * 32, "spanId": "b" * 16, "name": "chat"}]}]}]}
).encode()
LOGS = json.dumps(
    {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "a" * 32, "eventName": "gen_ai.choice"}]}]}]}
).encode()


def read(path: Path) -> list[Request | BadLine]:
    return list(Input(str(path)).requests())


def kinds(found: list[Request | BadLine]) -> list[str]:
    return ["bad" if isinstance(each, BadLine) else "logs" if each.logs else "spans" for each in found]


@pytest.mark.parametrize(
    "compress",
    [bytes, gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress],
    ids=["plain", "gzip", "xz", "zstd"],
)
def test_plain_and_compressed_json_lines_are_read(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "traces"
    file.write_bytes(compress(LINE + b"\n\n" + LOGS + b"\n"))
    assert kinds(read(file)) == ["spans", "logs"]


def test_a_json_document_over_many_lines_is_read(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(json.loads(LINE), indent=2))
    assert kinds(read(file)) == ["spans"]


def test_a_json_array_of_requests_is_read(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps([json.loads(LINE), json.loads(LOGS)], indent=1))
    assert kinds(read(file)) == ["spans", "logs"]


def _protobuf() -> tuple[bytes, bytes]:
    spans = ExportTraceServiceRequest()
    spans.resource_spans.add().scope_spans.add().spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name="x" * 200)
    logs = ExportLogsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"t" * 16, event_name="gen_ai.choice")
    return spans.SerializeToString(), logs.SerializeToString()


@pytest.mark.parametrize("prefix", [lambda n: n.to_bytes(4, "big"), varint], ids=["collector", "varint"])
def test_length_delimited_protobuf_is_read(tmp_path: Path, prefix: Callable[[int], bytes]) -> None:
    file = tmp_path / "traces.pb"
    file.write_bytes(b"".join(prefix(len(data)) + data for data in _protobuf()))
    assert kinds(read(file)) == ["spans", "logs"]


def test_protobuf_messages_across_buffer_boundaries_are_read(tmp_path: Path) -> None:
    file = tmp_path / "traces.pb"
    data = _protobuf()[0]
    file.write_bytes((len(data).to_bytes(4, "big") + data) * 400)
    assert kinds(read(file)) == ["spans"] * 400


def test_a_single_protobuf_request_without_length_is_read(tmp_path: Path) -> None:
    file = tmp_path / "request.pb"
    file.write_bytes(_protobuf()[0])
    assert kinds(read(file)) == ["spans"]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE + b"\n")))
    assert kinds(list(Input("-").requests())) == ["spans"]


def test_bad_lines_are_reported_with_their_place_and_other_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(b"\n".join([LINE, b"{nonsense", b'{"foo": 1}', b'{"resourceMetrics": []}', LINE]))
    found = read(file)
    assert kinds(found) == ["spans", "bad", "bad", "spans"], "metrics are ignored"
    bad = [each for each in found if isinstance(each, BadLine)]
    assert [each.place for each in bad] == [f"{file}:2", f"{file}:3"]


def test_a_truncated_compressed_file_gives_its_readable_part(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl.gz"
    packed = gzip.compress(b"\n".join([LINE] * 2000))
    file.write_bytes(packed[: len(packed) // 2])
    found = read(file)
    assert kinds(found)[0] == "spans"
    assert isinstance(found[-1], BadLine)
    assert "ends early" in found[-1].reason or "not JSON" in found[-1].reason


def test_a_truncated_protobuf_file_ends_with_a_bad_line(tmp_path: Path) -> None:
    file = tmp_path / "traces.pb"
    data = _protobuf()[0]
    file.write_bytes(len(data).to_bytes(4, "big") + data + len(data).to_bytes(4, "big") + data[:10])
    assert kinds(read(file)) == ["spans", "bad"]


def test_a_missing_file_a_directory_and_an_empty_file_are_reported(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name, word in ((tmp_path / "none", "No such file"), (tmp_path, "directory"), (tmp_path / "empty", "empty")):
        with pytest.raises(UnusableInputError, match=word):
            read(name)

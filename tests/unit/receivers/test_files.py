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
def test_json_lines_plain_and_compressed(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "traces"
    file.write_bytes(compress(LINE + b"\n\n" + LOGS + b"\n"))
    assert kinds(read(file)) == ["spans", "logs"]


def test_one_document_over_many_lines(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(json.loads(LINE), indent=2))
    assert kinds(read(file)) == ["spans"]


def test_an_array_of_requests(tmp_path: Path) -> None:
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
def test_length_delimited_protobuf(tmp_path: Path, prefix: Callable[[int], bytes]) -> None:
    file = tmp_path / "traces.pb"
    file.write_bytes(b"".join(prefix(len(data)) + data for data in _protobuf()))
    assert kinds(read(file)) == ["spans", "logs"]


def test_lengths_that_straddle_a_buffer(tmp_path: Path) -> None:
    file = tmp_path / "traces.pb"
    data = _protobuf()[0]
    file.write_bytes((len(data).to_bytes(4, "big") + data) * 400)
    assert kinds(read(file)) == ["spans"] * 400


def test_a_single_protobuf_request_without_length(tmp_path: Path) -> None:
    file = tmp_path / "request.pb"
    file.write_bytes(_protobuf()[0])
    assert kinds(read(file)) == ["spans"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE + b"\n")))
    assert kinds(list(Input("-").requests())) == ["spans"]


def test_bad_lines_are_named_and_harm_no_other(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(b"\n".join([LINE, b"{nonsense", b'{"foo": 1}', b'{"resourceMetrics": []}', LINE]))
    found = read(file)
    assert kinds(found) == ["spans", "bad", "bad", "spans"], "metrics are passed over in silence"
    bad = [each for each in found if isinstance(each, BadLine)]
    assert [each.place for each in bad] == [f"{file}:2", f"{file}:3"]


def test_a_cut_compressed_file_gives_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl.gz"
    packed = gzip.compress(b"\n".join([LINE] * 2000))
    file.write_bytes(packed[: len(packed) // 2])
    found = read(file)
    assert kinds(found)[0] == "spans"
    assert isinstance(found[-1], BadLine)
    assert "ends early" in found[-1].reason or "not JSON" in found[-1].reason


def test_a_cut_protobuf_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "traces.pb"
    data = _protobuf()[0]
    file.write_bytes(len(data).to_bytes(4, "big") + data + len(data).to_bytes(4, "big") + data[:10])
    assert kinds(read(file)) == ["spans", "bad"]


def test_what_cannot_be_opened_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name, word in ((tmp_path / "none", "No such file"), (tmp_path, "directory"), (tmp_path / "empty", "empty")):
        with pytest.raises(UnusableInputError, match=word):
            read(name)

"""Jaeger and Tempo answers equal the sent OTLP."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.show.report.detail import describe
from pandaeval_lab.replay.files import BadLine, Input, Request, UnusableInputError
from pandaeval_lab.replay.trace_files import TraceFiles

CAPTURES = Path(__file__).parents[2] / "golden" / "captures"
RECORDINGS = sorted(CAPTURES.glob("*/tool_error.otlp.jsonl"))


def _spans_of(file: Path) -> list[dict[str, Any]]:
    return [found for line in file.read_text().splitlines() if "resourceSpans" in (found := json.loads(line))]


def _understood(file: Path) -> list[dict[str, Any]]:
    with TraceFiles() as run:
        for request in Input(str(file)).requests():
            assert isinstance(request, Request), request
            run.add(request)
        return [json.loads(json.dumps(describe(trace), default=str)) for trace in run.traces()]


def _based(value: Any) -> Any:
    if isinstance(value, list):
        return [_based(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(held)).decode()
        if key in ("traceId", "spanId", "parentSpanId") and isinstance(held, str)
        else _based(held)
        for key, held in value.items()
    }


@pytest.mark.parametrize("shape", ["result", "batches", "trace"])
def test_otlp_in_a_query_answer_is_read_like_sent_otlp(tmp_path: Path, shape: str) -> None:
    (request, *_) = _spans_of(RECORDINGS[0])
    batches = request["resourceSpans"]
    answer: dict[str, Any] = {
        "result": {"result": {"resourceSpans": batches}},
        "batches": {"batches": _based(batches)},
        "trace": {"trace": {"resourceSpans": _based(batches)}, "metrics": {"inspectedBytes": "23"}},
    }[shape]
    sent, got = tmp_path / "sent.json", tmp_path / "got.json"
    sent.write_text(json.dumps(request))
    got.write_text(json.dumps(answer))
    assert _understood(got) == _understood(sent) != []


def test_damaged_query_answers_are_bad_lines_with_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "damaged.jsonl"
    lines = (
        {"data": [{"traceID": "1", "spans": [{"spanID": "2"}]}]},
        {"batches": [{"scopeSpans": [{"spans": [{"traceId": 5}]}]}]},
        {"data": None, "errors": [{"msg": "trace not found"}]},
        {"trace": 1, "batches": [3]},
    )
    file.write_text("\n".join(map(json.dumps, lines)))
    found = list(Input(str(file)).requests())
    assert [type(each) for each in found] == [BadLine] * len(lines)
    assert all(isinstance(each, BadLine) and each.reason for each in found)


@pytest.mark.parametrize("blank", ["\n", "\n" * 500, " \r\n\t\n" * 40, "\ufeff\n\n"])
def test_a_file_of_blank_lines_is_empty(tmp_path: Path, blank: str) -> None:
    file = tmp_path / "blank.jsonl"
    file.write_text(blank)
    with pytest.raises(UnusableInputError, match="the file is empty"):
        list(Input(str(file)).requests())


def test_a_document_after_blank_lines_or_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (request, *_) = _spans_of(RECORDINGS[0])
    file = tmp_path / "windows.json"
    text = json.dumps(request, indent=1).replace('{\n "resourceSpans"', '{ "resourceSpans"', 1)
    assert text.splitlines()[0].endswith("[")
    file.write_text("\ufeff" + "\n" * 100 + text)
    assert [type(each) for each in Input(str(file)).requests()] == [Request]
    file.write_text("\n" * 100 + json.dumps(request) + "\nnot this\n")
    good, bad = Input(str(file)).requests()
    assert isinstance(good, Request)
    assert isinstance(bad, BadLine)
    assert bad.place == f"{file}:102"

"""Traces that were misread once, with their correct values.

python tests/golden/test_reports.py NAME.otlp.jsonl # writes NAME.json with the current values

Put the trace into ``tests/golden/reports``, run the command, and correct NAME.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "reports"
_REPO = Path(__file__).parents[2]
sys.path[:0] = [str(_REPO), str(_REPO / "collector")] if __name__ == "__main__" else []

from pandaeval_collector.show.report.detail import describe  # noqa: E402
from tests.golden.conformance_capture import read  # noqa: E402

_COMPARED = ("input", "output", "session_id", "agent", "status", "llm_calls", "tokens", "turns", "reasoning")
_OF_CALL = ("name", "arguments", "result", "error")


def values(path: Path) -> list[dict[str, Any]]:
    found = []
    for recorded in read(path):
        whole = describe(recorded.trace)
        calls = [{name: call[name] for name in _OF_CALL} for call in whole["tool_calls"]]
        found.append({**{name: whole[name] for name in _COMPARED}, "tool_calls": calls})
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_reported_trace_is_read_correctly(path: Path) -> None:
    expected = json.loads(path.read_text())
    found = values(path.with_suffix(".otlp.jsonl"))
    assert len(found) == len(expected)
    for given, right in zip(found, expected, strict=True):
        assert right
        assert {name: given[name] for name in right} == right


def test_every_reported_trace_has_expected_values() -> None:
    names = {path.name.removesuffix(".otlp.jsonl") for path in FOLDER.glob("*.otlp.jsonl")}
    assert names == {path.stem for path in FOLDER.glob("*.json")}
    assert names


if __name__ == "__main__":
    target = Path(sys.argv[1])
    text = json.dumps(values(target), indent=2, ensure_ascii=False)
    target.with_name(target.name.replace(".otlp.jsonl", ".json")).write_text(f"{text}\n")

"""Reading results from JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_lab.replay.result_lines import result_lines

GOOD = '{"metric": "m", "level": "trace", "outcome": "scored", "revision": 1}'


def read(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    return [each["metric"] for each in result_lines(path)]


def test_byte_order_marks_crlf_and_blank_lines_are_ignored(tmp_path: Path) -> None:
    assert read(tmp_path / "r.jsonl", b"\xef\xbb\xbf" + f"{GOOD}\r\n\r\n \n{GOOD}".encode()) == ["m", "m"]


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        "[" * 100_000,
        GOOD.replace('"trace"', "5"),
        GOOD.replace('"m"', "null"),
        GOOD.replace("1}", '"x"}'),
        GOOD.replace('"m"', '"\\ud800"'),
        GOOD.replace("1}", '1, "score": NaN}'),
    ],
)
def test_an_invalid_result_line_is_an_error_with_its_line_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(UserError, match="line 2: no result"):
        read(tmp_path / "r.jsonl", f"{GOOD}\n{line}\n".encode())

"""Drawing and counting flags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.flags import _entries, _tell_sessions, draw, main
from pandaeval_collector.base.score import Score
from pandaeval_lab.replay.files import Request
from pandaeval_otel.wire.otlp_json import traces_from_json
from support.flag_counts import LEDGER, VERDICTS, record, recorded, table

SECRET = "label-of-the-set"


def attribute(key: str, value: object) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def run(number: int, answer: str, session: str) -> Request:
    """Return a run with hidden resource attributes."""
    asked = message("user", "Where is my order W4821 and what did I pay for it?")
    spans = [
        ("invoke_agent", "", None, [message("assistant", answer)], []),
        ("execute_tool", "1", None, None, [("gen_ai.tool.name", "get_order"), ("gen_ai.tool.call.id", "c1")]),
    ]
    spans[1][4].extend(
        [
            ("gen_ai.tool.call.arguments", '{"order_id": "W4821"}'),
            ("gen_ai.tool.call.result", '{"order_id": "W4821", "total": "$54.04", "shipped": "2025-03-02"}'),
        ]
    )
    rows = [
        {
            "traceId": f"{number:032x}",
            "spanId": f"{number:015x}{place}",
            "parentSpanId": f"{number:015x}0" if parent else "",
            "name": operation,
            "startTimeUnixNano": str(10**18 + number * 10**9 + place),
            "endTimeUnixNano": str(10**18 + number * 10**9 + 10 - place),
            "attributes": [
                attribute("gen_ai.operation.name", operation),
                attribute("gen_ai.conversation.id", session),
                *(
                    [attribute("gen_ai.input.messages", [asked]), attribute("gen_ai.output.messages", out)]
                    if out
                    else []
                ),
                *(attribute(key, value) for key, value in more),
            ],
        }
        for place, (operation, parent, _, out, more) in enumerate(spans)
    ]
    resource = {"attributes": [attribute("service.name", "desk"), attribute("label", SECRET)]}
    data = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "own"}, "spans": rows}]}]}
    return Request(False, traces_from_json(data).SerializeToString())


RIGHT = "Your order W4821 was shipped on 2025-03-02 and you paid $54.04 for it."
WRONG = "Your order W4821 was shipped on 2025-03-02 and you paid ${}.17 for it."


def source(name: str, half: str) -> Iterator[Request]:
    assert half == "odd"
    start = 100 if name == "first" else 200
    for number in range(start, start + 6):
        answer = WRONG.format(900 + number) if number % 2 else RIGHT
        yield run(number, answer, f"session {number // 4 * 4 if name == 'first' else number}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("flags")
    draw(["first", "second"], "odd", ["trace.grounding"], 7, 4, out, source)
    return out / "trace.grounding"


def index(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]


class TestDraw:
    def test_the_requested_number_is_drawn_evenly_from_the_sets(self, folder: Path) -> None:
        assert sorted(each["set"] for each in index(folder)) == ["first", "first", "second", "second"]
        assert [path.name for path in sorted(folder.glob("*.txt"))] == [f"00{n}.txt" for n in range(1, 5)]

    def test_a_page_shows_the_flagged_value_and_the_evidence(self, folder: Path) -> None:
        for path in folder.glob("*.txt"):
            page = path.read_text()
            assert re.search(r"THE FLAGGED VALUE: '\$1?\d{3}\.17'", page)
            assert 'get_order({"order_id": "W4821"})' in page
            assert '"total": "$54.04"' in page
            assert len(page) < 12_000

    def test_drawn_files_contain_no_label(self, folder: Path) -> None:
        assert not [path for path in folder.rglob("*.*") if SECRET in path.read_text()]

    def test_the_same_seed_draws_the_same_flags(self, folder: Path, tmp_path: Path) -> None:
        draw(["first", "second"], "odd", ["trace.grounding"], 7, 4, tmp_path, source)
        assert index(tmp_path / "trace.grounding") == index(folder)

    def test_each_session_gives_one_flag_before_any_gives_a_second(self, tmp_path: Path) -> None:
        draw(["first"], "odd", ["trace.grounding"], 7, 2, tmp_path, source)
        records = [path.read_text() for path in (tmp_path / "trace.grounding/records").glob("*.txt")]
        assert len({("1001.17" in each, "1005.17" in each) for each in records}) == 2

    def test_failing_sessions_are_counted_per_set(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        draw(["first"], "odd", ["trace.grounding"], 7, 2, tmp_path, source)
        assert re.search(
            r"^first: [1-9] of \d sessions have a failing result, .*; 0 read as fine$", capsys.readouterr().out, re.M
        )

    def test_failing_sessions_that_read_as_fine_are_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        def result(success: bool | None, label: str = "") -> Any:
            return SimpleNamespace(success=success, label=label)

        of_sessions = {
            "passed": result(True), "no problem": result(None, "no_problem_found"), "failed": result(False, "fail"),
            "open": result(None, "unclear"), "without failure": result(True),
        }  # fmt: skip
        sessions: Any = {name: [SimpleNamespace(trace_id=f"trace of {name}")] for name in (*of_sessions, "unscored")}
        results: Any = {
            ("trace.grounding", f"trace of {name}"): {"": result(name == "without failure")} for name in sessions
        }
        good = {"passed": True, "failed": False, "open": True, "without failure": True}
        _tell_sessions("first", sessions, results, of_sessions, good)
        assert capsys.readouterr().out == (
            "first: 5 of 6 sessions have a failing result, 2 of 3 good sessions; 2 read as fine\n"
        )

    def test_suspects_are_drawn_only_on_request(self) -> None:
        result: Any = SimpleNamespace(finding=Score(0.1, "off topic"), label="suspect", success=None)
        assert _entries("trace.coherence", result, suspected=True) == (None,)
        assert _entries("trace.coherence", result, suspected=False) == ()


INDEX = [
    {"number": f"{n:03d}", "flag": f"id{n}", "metric": "trace.grounding", "version": v, "set": "first"}
    for n, v in ((1, "10"), (2, "10"), (3, "10"), (4, "9"))
]


class TestLedger:
    def test_the_ledger_contains_ids_verdicts_and_causes(self, tmp_path: Path) -> None:
        ledger = tmp_path / "ledger.jsonl"
        rows = [{"flag": "001", "verdict": "true"}, {"flag": "2.txt", "verdict": "wrong", "cause": "sum of two fares"}]
        assert record(rows, INDEX, "reader 1", ledger) == (2, 2)
        assert recorded(ledger)[1] == {
            "flag": "id2",
            "metric": "trace.grounding",
            "version": "10",
            "set": "first",
            "verdict": "wrong",
            "cause": "sum of two fares",
            "reader": "reader 1",
        }

    def test_a_later_verdict_of_a_reader_replaces_the_earlier(self, tmp_path: Path) -> None:
        ledger = tmp_path / "ledger.jsonl"
        record([{"flag": "001", "verdict": "true"}], INDEX, "reader 1", ledger)
        record([{"flag": "001", "verdict": "wrong", "cause": "no claim"}], INDEX, "reader 1", ledger)
        assert [line["verdict"] for line in recorded(ledger)] == ["wrong"]

    @pytest.mark.parametrize(
        "row",
        [
            {"flag": "077", "verdict": "true"},
            {"flag": "001", "verdict": "perhaps"},
            {"flag": "001", "verdict": "wrong"},
        ],
    )
    def test_an_invalid_verdict_is_an_error_and_nothing_is_written(self, tmp_path: Path, row: dict[str, str]) -> None:
        ledger = tmp_path / "ledger.jsonl"
        with pytest.raises(ValueError, match="flag"):
            record([{"flag": "002", "verdict": "true"}, row], INDEX, "reader 1", ledger)
        assert not ledger.exists()

    def test_the_table_counts_by_metric_and_version(self, tmp_path: Path) -> None:
        ledger = tmp_path / "ledger.jsonl"
        rows = [
            {"flag": "001", "verdict": "true"},
            {"flag": "002", "verdict": "wrong", "cause": "no claim"},
            {"flag": "003", "verdict": "wrong", "cause": "no claim"},
            {"flag": "004", "verdict": "general_knowledge", "cause": "a capital"},
        ]
        record(rows, INDEX, "reader 1", ledger)
        new, old = table(recorded(ledger)).splitlines()[2:]
        assert new == "| `trace.grounding` | 10 | 3 (first 3) | 0.33 [0.06, 0.79] | 0 | 2 | no claim (2) |"
        assert old == "| `trace.grounding` | 9 | 1 (first 1) | 0.00 [0.00, 0.79] | 1 | 0 | a capital |"

    def test_the_majority_of_readers_decides_and_a_tie_is_not_true(self, tmp_path: Path) -> None:
        ledger = tmp_path / "ledger.jsonl"
        record([{"flag": "001", "verdict": "true"}], INDEX, "reader 1", ledger)
        record([{"flag": "001", "verdict": "wrong", "cause": "no claim"}], INDEX, "reader 2", ledger)
        assert "| 1 (first 1) | 0.00 [" in table(recorded(ledger))
        record([{"flag": "001", "verdict": "true"}], INDEX, "reader 3", ledger)
        assert "| 1 (first 1) | 1.00 [" in table(recorded(ledger))

    def test_the_command_records_verdicts_from_a_file_beside_the_index(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "verdicts.jsonl").write_text('{"flag": "001", "verdict": "true", "cause": ""}\n')
        ledger = tmp_path / "ledger.jsonl"
        arguments = ["flags.py", "--verdicts", str(folder / "verdicts.jsonl"), "--ledger", str(ledger), "--table"]
        monkeypatch.setattr("sys.argv", arguments)
        main()
        assert capsys.readouterr().out.startswith("1 verdicts taken, 3 flags without one\n| metric |")

    def test_the_committed_ledger_has_only_the_allowed_fields_and_short_causes(self) -> None:
        for line in recorded(LEDGER):
            assert list(line) == ["flag", "metric", "version", "set", "verdict", "cause", "reader"]
            assert line["verdict"] in VERDICTS
            assert len(line["cause"]) <= 100

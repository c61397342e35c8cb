"""docs/guides/cases.md: its examples grade recorded trials."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.trials import Call, run, write

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "cases.md"
EXAMPLES = re.findall(r"^## Example \d.*?^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
GRADERS, *_ = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
FINALIZE: Call = ("finalize_invoice", {})
SEND: Call = ("send_invoice", {})
SEARCH: Call = ("search", {"to": "BERN", "date": "2026-01-09", "class": 2})
BOOK: Call = ("book", {"train": "IC 708", "seats": [13, 12]})
INVOICE, SEATS = "Send invoice inv_1 to the customer", "Book two seats to Bern on Friday"
REFUND: Call = ("refund_order", {"order": "A7"})


def test_examples_4_and_5_have_a_scenario_and_mocks() -> None:
    assert len(EXAMPLES) == 5
    assert "scenario" in EXAMPLES[3]
    assert "mocks" in EXAMPLES[4]


@pytest.mark.parametrize(
    ("example", "runs", "expected"),
    [
        (
            0,
            [
                run(1, task=INVOICE, calls=[FINALIZE, SEND], state={"invoice_status": "sent"}),
                run(2, task=INVOICE, calls=[SEND, FINALIZE, SEND], state={"invoice_status": "sent"}),
                run(3, task=INVOICE, calls=[FINALIZE, SEND], state={"invoice_status": "draft"}),
            ],
            [1.0, 0.0, 0.0],
        ),
        (
            1,
            [
                run(1, task=SEATS, calls=[SEARCH, BOOK]),
                run(2, task=SEATS, calls=[SEARCH, ("weather", {}), BOOK]),
                run(3, task=SEATS, calls=[("book", {"train": "IC 9"})]),
            ],
            [1.0, 1.0, 0.0],
        ),
        (
            2,
            [
                run(1, case="refund-talk", trial="1", calls=[("get_order", {})], answer="Which order, please?"),
                run(2, case="refund-talk", trial="1", task="A7", calls=[REFUND], answer="Done. Thank you."),
                run(3, case="refund-talk", trial="2", calls=[REFUND], answer="Done."),
                run(4, case="refund-talk", trial="2", task="?", answer="Yes. Thank you."),
                run(5, case="refund-talk", trial="3", answer="Which?"),
                run(6, case="refund-talk", trial="3", task="A7", calls=[REFUND], answer="Done."),
            ],
            [1.0, 0.0, 0.0],
        ),
    ],
)
def test_an_example_grades_its_trials(
    example: int, runs: list[dict[str, object]], expected: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graders.py").write_text(GRADERS)
    (tmp_path / "suite.yaml").write_text(EXAMPLES[example])
    write(tmp_path / "traces.jsonl", runs)
    options = ["--cases", "suite.yaml", "--format", "json", "--metrics", "trial_correct"]
    done = CliRunner().invoke(app, ["evaluate", "traces.jsonl", *options])
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["score"] for each in found if each["metric"] == "trial_correct"] == expected

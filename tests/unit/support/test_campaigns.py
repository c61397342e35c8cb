"""The table of long proofs is complete."""

from __future__ import annotations

import json
from pathlib import Path

from support.campaigns import BEGINS, CAMPAIGNS, CANDIDATE, ENDS, OF_TESTS, PROOFS, table, with_table

_PAGE = PROOFS.parents[2] / "docs/internals/ledgers.md"
_ELSEWHERE = {"attacks-ledger.jsonl"}
"""Has a table of its own."""


def test_every_ledger_belongs_to_a_campaign() -> None:
    assert {file.name for file in PROOFS.glob("*.jsonl")} <= {each.ledger for each in CAMPAIGNS} | _ELSEWHERE


def test_the_scripts_and_test_files_of_campaigns_exist() -> None:
    assert all((PROOFS / each.script).is_file() for each in CAMPAIGNS if each.script)
    assert all((PROOFS.parents[2] / file).is_file() for _, files in OF_TESTS for file in files.split())


def test_each_campaign_has_a_row_and_shows_if_it_was_not_run(tmp_path: Path) -> None:
    rows = table(tmp_path).splitlines()[2:]
    assert len(rows) == len(CAMPAIGNS) + len(OF_TESTS)
    assert all("**not run**" in row for row in rows[: len(CAMPAIGNS)])


def test_ledger_lines_are_summed_and_problems_counted(tmp_path: Path) -> None:
    lines = [
        {"commit": commit, "starts": 20, "aborted": aborted, "problems": ["one"] * aborted}
        for commit, aborted in (("a1", 0), ("b2", 1), (CANDIDATE[0], 0))
    ]
    (tmp_path / "starts-ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [row] = [row for row in table(tmp_path).splitlines() if row.startswith("| starts under load")]
    assert "60 of 1,000 starts | 20 | 1 | 1 aborted | `starts.py`" in row


def test_updating_the_page_inserts_the_table_and_keeps_the_rest() -> None:
    page = _PAGE.read_text()
    assert page.count(BEGINS) == page.count(ENDS) == 1
    made = with_table(page)
    assert all(each.name in made for each in CAMPAIGNS)
    assert made.partition(ENDS)[2] == page.partition(ENDS)[2] != ""


def test_the_table_of_the_page_is_that_of_the_ledgers() -> None:
    page = _PAGE.read_text()
    assert with_table(page) == page

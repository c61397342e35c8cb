"""docs/internals/performance.md shows the newest comparison."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def compare() -> Any:
    sys.path.insert(0, str(ROOT / "tests" / "lab" / "bench"))
    try:
        import compare
    finally:
        sys.path.pop(0)
    return compare


def line(**more: Any) -> dict[str, Any]:
    figures = {"spans": 1_000, "rejected": 0, "refused": 0, "spans_s": 5e4, "p50_ms": 1.0, "p99_ms": 9.0}
    costs = {"answered_cpu_s": 0.01, "cpu_s": 0.1, "settled_s": 4.0, "rss_mb": 100.0, "sender_busy": 0.5}
    stamp = {
        "time": "2026-11-25 22:30 UTC",
        "commit": "abc",
        "machine": "2 x a processor",
        "load": "1.0",
        "version": "1.0",
    }
    return {**stamp, "system": "Rotel, to nowhere", "size": "1 KB", **figures, **costs, **more}


def row(compare: Any, *lines: dict[str, Any]) -> list[str]:
    """Return the cells of the first row."""
    figures = compare.report(list(lines)).split("**Spans of 1 KB,")[1]
    return [cell.strip() for cell in figures.splitlines()[4].strip("|").split("|")]


class TestRowsOfOtherSystems:
    def test_costs_include_the_work_until_all_spans_are_processed(self, compare: Any) -> None:
        shown = row(compare, line())
        assert shown[4:8] == ["10", "100", "10,000", "4 s"]

    def test_costs_are_bounds_if_the_spans_were_not_all_processed(self, compare: Any) -> None:
        assert row(compare, line(settled_s=None))[5:8] == ["> 100", "< 10,000", "not in 40 s"]

    def test_rejected_spans_do_not_count_as_processed(self, compare: Any) -> None:
        shown = row(compare, line(rejected=500, refused=3))
        assert shown[5] == "200"
        assert shown[9] == "3 requests refused, 500 spans rejected"

    def test_a_row_shows_the_median_of_several_rounds(self, compare: Any) -> None:
        assert row(compare, *(line(cpu_s=cpu) for cpu in (0.1, 0.2, 0.9)))[5] == "200"

    def test_a_system_that_failed_or_accepted_nothing_is_marked(self, compare: Any) -> None:
        assert row(compare, line(failed="did not start"))[1] == "failed: did not start"
        assert row(compare, line(spans=0))[1] == "took nothing"

    def test_a_system_that_is_not_installed_is_listed_with_the_reason(self, compare: Any) -> None:
        report = compare.report([{**line(), "missing": "`pip install --pre rotel`: no network"}])
        assert "| Rotel, to nowhere | **not installed here, because** `pip install --pre rotel`: no network |" in report

    def test_only_the_newest_run_of_a_system_counts(self, compare: Any, tmp_path: Path) -> None:
        lines = [line(time="1"), line(time="1", system="Phoenix"), line(time="2"), line(time="2", size="5 KB")]
        (tmp_path / "ledger").write_text("".join(compare.json.dumps(each) + "\n" for each in lines))
        assert compare.newest(tmp_path / "ledger") == lines[1:]


def test_the_page_shows_the_newest_comparison_in_the_ledger(compare: Any) -> None:
    """Fix: ``python tests/lab/bench/compare.py --page``."""
    shown = (ROOT / "docs/internals/performance.md").read_text(encoding="utf-8")
    assert compare.report(compare.newest(compare.LEDGER)).strip() in shown

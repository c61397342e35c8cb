"""Figures of proof ledgers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.hostile.alone import ALONE
from support.hostile.attack import attacks
from support.hostile.table import table, with_table
from support.slope import slope_an_hour

_ROOT = Path(__file__).parents[3]


def line(scale: int, p99: float | None = 0.5, mib: int = 200, problems: tuple[str, ...] = (), **more: Any) -> Any:
    begun = {"attack": "bombs", "scale": scale, "time": "2026-11-25T10:00:00", "commit": "abc"}
    measured = {"normal": {"p99_s": p99}, "before": {"p99_s": 0.25}, "peak_mib": mib}
    return {**begun, **measured, "problems": [*problems], **more}


def row(*lines: Any) -> str:
    return table(lines, [lines[0]["attack"]]).splitlines()[-1]


class TestTableOfAttacks:
    def test_the_newest_ledger_line_of_each_scale_is_shown(self) -> None:
        found = row(line(1, 0.1), line(10, 0.7), line(1, 0.3, time="2026-11-26T10:00:00", commit="def"))
        assert found == "| bombs | 0.30 (0.25) | 200 | 0.70 (0.25) | 200 |"

    def test_problems_are_bold(self) -> None:
        slow = line(1, 1.2, 600, ("the 99th percentile of normal traffic was 1.2 s", "it took 600 MiB", "3 x 'taken'"))
        assert row(slow) == "| bombs | **1.20** (0.25); **3 x 'taken'** | **600** | not run |  |"

    def test_the_load_of_the_machine_is_in_brackets(self) -> None:
        assert row(line(1, load=17.4)).startswith("| bombs | 0.50 (0.25; load 17) | 200 |")

    def test_older_lines_without_a_measurement_before_are_shown_without_it(self) -> None:
        assert row(line(1, before={})).startswith("| bombs | 0.50 | 200 |")

    def test_attacks_on_a_separate_collector_show_passed_or_their_problems(self) -> None:
        alone = {"attack": "a", "scale": 1, "time": "2026-11-25T10:00:00", "commit": "abc"}
        found = row({**alone, "problems": []}, {**alone, "scale": 10, "problems": ["it | hangs", "twice"]})
        assert found == "| a | passed |  | **it   hangs; twice** |  |"

    def test_removed_attacks_are_left_out_and_missing_runs_are_marked(self) -> None:
        assert table([{**line(1), "attack": "none"}], ["bombs"]).splitlines()[2:] == [
            "| bombs | not run |  | not run |  |"
        ]

    def test_the_documentation_shows_the_ledger(self) -> None:
        ledger = (_ROOT / "tests/lab/proofs/attacks-ledger.jsonl").read_text(encoding="utf-8")
        shown = (_ROOT / "docs/internals/reliability-tests.md").read_text(encoding="utf-8")
        lines = [json.loads(each) for each in ledger.splitlines()]
        assert with_table(shown, lines, [*attacks(), *ALONE]) == shown, "python tests/lab/proofs/attacks.py --table"


class TestSlope:
    def test_slope_of_a_line_is_exact(self) -> None:
        assert slope_an_hour([(0.0, 5.0), (1800.0, 6.0), (3600.0, 7.0)]) == 2.0

    def test_outliers_do_not_change_the_slope(self) -> None:
        points = [(float(at), 100.0) for at in range(100)]
        points[3], points[50] = (3.0, 900.0), (50.0, 0.0)
        assert slope_an_hour(points) == 0.0

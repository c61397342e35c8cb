"""Changes of metrics, rulings, prompts and judges in a window."""

from __future__ import annotations

from pathlib import Path

from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.versions import VersionStep, version_changes
from support.measured import BEGAN, HOUR_MS, Measured, fill

KEY, LOOP = "session.correctness", "trace.tool_loop"


def found(folder: Path, *runs: Measured, wanted: Wanted | None = None, step: int = HOUR_MS) -> list[VersionStep]:
    store, finder = fill(folder, runs), Finder(folder)
    try:
        return version_changes(finder, wanted or Wanted(), BEGAN, step)
    finally:
        finder.close()
        store.close()


def test_each_version_change_is_listed_at_its_first_time_step(tmp_path: Path) -> None:
    one = Measured("desk")
    two = one._replace(loop="2")
    three = two._replace(version="1+a1b2c3")
    four = three._replace(prompt="8")
    five = four._replace(judge="openai/large")
    assert found(tmp_path, one, one, two, three, three, four, five, one) == [
        VersionStep(2, LOOP, "metric", "1", "2"),
        VersionStep(3, KEY, "rulings", "", "a1b2c3"),
        VersionStep(5, KEY, "prompt", "7", "8"),
        VersionStep(6, KEY, "judge", "openai/small", "openai/large"),
        VersionStep(7, LOOP, "metric", "2", "1"),
        VersionStep(7, KEY, "rulings", "a1b2c3", ""),
        VersionStep(7, KEY, "prompt", "8", "7"),
        VersionStep(7, KEY, "judge", "openai/large", "openai/small"),
    ]


def test_agents_with_different_rulings_are_no_change_and_a_common_change_counts_once(tmp_path: Path) -> None:
    desk, shop = Measured("desk"), Measured("shop", "1+a1b2c3")
    assert found(tmp_path / "apart", desk, shop, desk, shop, step=2 * HOUR_MS) == []
    newer = desk._replace(loop="2"), shop._replace(loop="2")
    assert found(tmp_path / "both", desk, shop, *newer, step=2 * HOUR_MS) == [VersionStep(1, LOOP, "metric", "1", "2")]


def test_a_result_without_a_judge_or_prompt_is_no_change(tmp_path: Path) -> None:
    judged, not_judged = Measured("desk"), Measured("desk", prompt=None, judge=None)
    assert found(tmp_path, judged, not_judged, judged, not_judged) == []


def test_only_the_window_and_its_filters_count(tmp_path: Path) -> None:
    old, new, other = Measured("desk"), Measured("desk", "2"), Measured("shop")
    within = Wanted(since_ms=BEGAN + HOUR_MS)
    assert found(tmp_path / "late", old, new, new, wanted=within) == []
    assert found(tmp_path / "shop", old, new, other, wanted=Wanted(agent="shop")) == []
    assert found(tmp_path / "desk", old, new, other, wanted=Wanted(agent="desk")) == [
        VersionStep(1, KEY, "metric", "1", "2")
    ]

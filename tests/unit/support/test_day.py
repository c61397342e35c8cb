"""The plan of a day, and its chart."""

from __future__ import annotations

from itertools import pairwise

import pytest

from support.day_checks import Minute
from support.day_pictures import chart
from support.day_plan import CRASHES, FRONT, JUDGE, LIE, LOOP, N_CRASHES, SINK, WORKER, Plan, Shown

_HOUR = Plan(60)


@pytest.mark.parametrize(
    ("shown", "now", "problem"),
    [
        (True, 5, "it is shown too early or too late"),
        (True, 95, "it is shown too early or too late"),
        (False, 30, "it is missing"),
        (False, 15, ""),
        (True, 15, ""),
        (True, 85, ""),
    ],
)
def test_a_display_that_is_early_late_or_missing_is_a_problem(shown: bool, now: float, problem: str) -> None:
    assert Shown(may=10, must=20, until=80, ends=90).problem("it", shown, now) == problem


def test_events_of_the_hour_do_not_overlap() -> None:
    times = [_HOUR.at(event) for event in (LIE, WORKER, JUDGE, LOOP, SINK, FRONT, CRASHES)]
    assert all(before[1] < after[0] for before, after in pairwise(times))


def test_each_alert_is_required_at_one_check_of_the_hour_at_least() -> None:
    looks = [minute * _HOUR.tick for minute in range(1, 60)]
    assert all(any(each.must <= now <= each.until for now in looks) for each in _HOUR.alerts().values())


def test_incidents_are_expected_some_time_after_their_event() -> None:
    none = {"false_success": (0, 0), "loop": (0, 0), "error": (0, 0)}
    assert _HOUR.incidents(0) == none
    assert _HOUR.incidents(_HOUR.at(LIE)[0] + 10) == {**none, "false_success": (0, 1)}
    assert _HOUR.incidents(3600) == {"false_success": (1, 1), "loop": (1, 1), "error": (N_CRASHES, N_CRASHES)}


def test_the_chart_shows_events_alerts_banners_and_totals() -> None:
    minutes = [Minute(1.0, ["lie"], ["OneAlert"], ["sink down"], {}, {"runs": 3, "results": 20})]
    made = chart(minutes, _HOUR)
    assert all(
        each in made for each in ("event: lie", "alert: OneAlert", "banner: sink down", "results: 20 at the end")
    )

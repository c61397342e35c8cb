"""The figures that tell how well a score separates good runs from bad ones, against values that were worked out."""

from __future__ import annotations

import pytest

from bench._labelled_runs import Scored
from bench.labelled import rows
from pandaeval_collector.analysis.stats.problem_model import auroc, auroc_within, share, thirds


def test_counts_pairs_in_order_and_ties_as_half() -> None:
    assert auroc([1.0, 1.0], [0.0]).value == 1.0
    assert auroc([0.0], [1.0, 1.0]).value == 0.0
    assert auroc([0.5, 1.0], [0.5, 0.0]).value == pytest.approx(0.875)


def test_the_interval_is_delongs() -> None:
    found = auroc([0.5, 1.0], [0.5, 0.0])  # placements: good .75, 1; bad .75, 1: variance 2 x .03125 / 2
    assert found.low == pytest.approx(0.875 - 1.959964 * 0.03125**0.5)
    assert found.high == 1.0


def test_within_strata_what_they_differ_in_explains_nothing() -> None:
    good, bad = [3.0, 3.0], [0.0]
    more_good, more_bad = [10.0], [9.0, 11.0]
    assert auroc(good + more_good, bad + more_bad).value < 0.7
    assert auroc_within([(good, bad), (more_good, more_bad)]).value == pytest.approx((2 * 1.0 + 2 * 0.5) / 4)
    assert str(auroc_within([([1.0], [])])) == "–"


def test_a_share_has_wilsons_interval() -> None:
    found = share(8, 10)
    assert (round(found.low, 4), round(found.high, 4)) == (0.4902, 0.9433)
    assert str(share(0, 0)) == "–"


def test_thirds_keep_equal_lengths_together() -> None:
    assert thirds([1, 2, 3, 4, 5, 6]) == [0, 0, 1, 1, 2, 2]
    assert thirds([7, 7, 7]) == [0, 0, 0]


def test_a_row_counts_what_a_metric_failed() -> None:
    units = [
        Scored(True, {"m": 1.0}, {"m": False}, calls=1, spans=3),
        Scored(True, {"m": 0.4}, {"m": True}, calls=2, spans=3),
        Scored(False, {"m": 0.2}, {"m": True}, calls=3, spans=3),
        Scored(False, calls=3, spans=3),
    ]
    by_name = {row.metric: row for row in rows(units, ())}
    row = by_name["m"]
    assert (row.good, row.bad, row.auroc.value) == (2, 1, 1.0)
    assert (row.recall.value, row.precision.value, row.good_failed.value) == (1.0, 0.5, 0.5)
    assert by_name["baseline: fewer calls"].bad == 2, "baselines speak of every unit"
    assert rows(units, ["calls"])[0].metric.startswith("baseline")

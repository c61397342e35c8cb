"""Valid scores."""

from __future__ import annotations

import math

import pytest

from pandaeval_collector.base.score import Assumed, Score, Unscored, Why


@pytest.mark.parametrize("value", [0.0, 5e-324, 0.5, math.nextafter(1.0, 0.0), 1.0, 0, 1])
def test_a_score_lies_in_0_to_1(value: float) -> None:
    assert Score(value).value == value


@pytest.mark.parametrize(
    "value", [1.1, -0.1, math.nextafter(1.0, 2.0), -5e-324, 2.0, math.inf, -math.inf, math.nan], ids=repr
)
def test_what_lies_outside_is_refused_with_its_value(value: float) -> None:
    with pytest.raises(ValueError, match=r"^a score lies in 0\.\.1, not ") as refused:
        Score(value)
    assert str(refused.value).endswith(repr(value))


def test_what_is_not_said_is_left_out() -> None:
    score, assumed, unscored = Score(0.5), Assumed("nothing to do"), Unscored(Why.TIMEOUT)
    assert (score.raw, score.scale, score.label, score.failed, score.span_ids) == (None, None, None, False, ())
    assert [each.coverage for each in (score, unscored)] == [1.0, 1.0]
    assert [each.metadata for each in (score, assumed, unscored)] == [{}, {}, {}]
    assert (score.reason, unscored.reason) == ("", "")


def test_what_is_assumed_is_the_best() -> None:
    assert Assumed("nothing to do").value == 1.0


def test_every_reason_for_no_score_is_said_by_its_own_name() -> None:
    assert {each.name.lower(): each.value for each in Why} == {each.value: each.value for each in Why}

"""Valid scores."""

from __future__ import annotations

import math

import pytest

from pandaeval_collector.base.score import Assumed, Score, Unscored, Why


@pytest.mark.parametrize("value", [0.0, 5e-324, 0.5, math.nextafter(1.0, 0.0), 1.0, 0, 1])
def test_values_from_0_to_1_are_valid_scores(value: float) -> None:
    assert Score(value).value == value


@pytest.mark.parametrize(
    "value", [1.1, -0.1, math.nextafter(1.0, 2.0), -5e-324, 2.0, math.inf, -math.inf, math.nan], ids=repr
)
def test_a_score_outside_0_to_1_is_an_error_that_names_it(value: float) -> None:
    with pytest.raises(ValueError, match=r"^a score lies in 0\.\.1, not ") as refused:
        Score(value)
    assert str(refused.value).endswith(repr(value))


def test_findings_have_empty_defaults() -> None:
    score, assumed, unscored = Score(0.5), Assumed("nothing to do"), Unscored(Why.TIMEOUT)
    assert (score.raw, score.scale, score.label, score.failed, score.span_ids) == (None, None, None, False, ())
    assert [each.coverage for each in (score, unscored)] == [1.0, 1.0]
    assert [each.metadata for each in (score, assumed, unscored)] == [{}, {}, {}]
    assert (score.reason, unscored.reason) == ("", "")


def test_an_assumed_value_is_1_by_default() -> None:
    assert Assumed("nothing to do").value == 1.0


def test_the_value_of_every_why_is_its_name() -> None:
    assert {each.name.lower(): each.value for each in Why} == {each.value: each.value for each in Why}

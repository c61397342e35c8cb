"""Caps on label values and series."""

from __future__ import annotations

import pytest

from pandaeval_collector.store.series import CAPS, OTHER, SeriesLabels, filled, folded
from pandaeval_otel.base.names import MAX_NAME_CHARS, bounded

LONG = "x" * (MAX_NAME_CHARS + 1)
FULL = (
    ("gen_ai.evaluation.name", "m"),
    ("pandaeval.level", "trace"),
    ("gen_ai.agent.name", "a"),
    ("pandaeval.service", "s"),
    ("deployment.environment.name", "e"),
)


@pytest.mark.parametrize("kind", CAPS)
def test_each_label_has_its_own_cap_and_admitted_values_stay(kind: str) -> None:
    labels = SeriesLabels()
    admitted = [labels.admit(kind, f"{number}") for number in range(CAPS[kind] + 1)]
    assert admitted == [*map(str, range(CAPS[kind])), OTHER]
    assert labels.admit(kind, "0") == "0"
    assert labels.admit(kind, "new") == OTHER
    others = {other: labels.admit(other, "new") for other in CAPS if other != kind}
    assert set(others.values()) == {"new"}


def test_new_values_are_returned_once_and_known_values_never() -> None:
    labels = SeriesLabels([("agent", "old"), ("service", LONG)])
    for kind, value in (("agent", "old"), ("agent", "a"), ("agent", "a"), ("service", LONG), ("model", "a")):
        assert labels.admit(kind, value) == bounded(value)
    assert labels.take_new() == [("agent", "a"), ("model", "a")]
    assert labels.take_new() == []


def test_known_values_count_towards_the_cap() -> None:
    labels = SeriesLabels([("environment", f"{number}") for number in range(CAPS["environment"])])
    assert labels.admit("environment", "new") == OTHER
    assert labels.admit("environment", "") == ""
    assert labels.take_new() == []


@pytest.mark.parametrize(
    ("about", "verdict", "attributes"),
    [
        (("m", "trace", "a", "s", "e"), (), FULL),
        (("m", "trace", "", "", None), (), FULL[:2]),
        (("m", "trace", "", "", ""), (), FULL[:2]),
        (
            ("m", "trace", "a", "s", "e"),
            ("scored", None, "true"),
            (*FULL, ("pandaeval.outcome", "scored"), ("pandaeval.passed", "true")),
        ),
        (
            ("m", "trace", "a", "s", "e"),
            ("unscored", "timeout", ""),
            (*FULL, ("pandaeval.outcome", "unscored"), ("pandaeval.why", "timeout")),
        ),
        (
            (LONG, "trace", LONG, LONG, LONG),
            (),
            tuple((key, bounded(LONG) if key[-5:] != "level" else value) for key, value in FULL),
        ),
    ],
)
def test_a_series_has_attributes_only_for_given_values(
    about: tuple[str, str, str, str, str | None], verdict: tuple[str | None, ...], attributes: object
) -> None:
    labels = SeriesLabels()
    assert labels.named(*about, *verdict) == attributes
    assert labels.named(*about, *verdict) == attributes, "the second time"


def test_the_same_names_with_another_verdict_are_another_series() -> None:
    labels = SeriesLabels()
    about = ("m", "trace", "a", "s", "e")
    verdicts: list[tuple[str | None, ...]] = [
        (),
        ("scored", None, "true"),
        ("scored", None, "false"),
        ("assumed", None, "true"),
    ]
    assert len({labels.named(*about, *verdict) for verdict in verdicts}) == 4


def test_new_series_over_the_cap_are_folded_and_existing_series_continue() -> None:
    first, second = (("gen_ai.agent.name", "a"),), (("gen_ai.agent.name", "b"),)
    labels = SeriesLabels(series=[("n", first)], most=2)
    assert labels.series == 1
    assert labels.within("n", first) == first
    assert labels.within("other", first) == first, "another instrument, another series"
    assert labels.series == 2
    assert labels.within("n", second) == (("gen_ai.agent.name", OTHER),)
    assert labels.within("n", second) == (("gen_ai.agent.name", OTHER),)
    assert labels.within("n", first) == first
    assert labels.series == 3, "the folded series is counted too"


def test_folding_replaces_all_values_that_senders_choose() -> None:
    given = (*FULL, ("gen_ai.request.model", "gpt"), ("pandaeval.outcome", "scored"))
    assert folded(given) == (
        ("gen_ai.evaluation.name", "m"),
        ("pandaeval.level", "trace"),
        ("gen_ai.agent.name", OTHER),
        ("pandaeval.service", OTHER),
        ("deployment.environment.name", OTHER),
        ("gen_ai.request.model", OTHER),
        ("pandaeval.outcome", "scored"),
    )


def test_absent_values_are_left_out() -> None:
    assert filled(("a", "1"), ("b", ""), ("c", None), ("d", "2")) == (("a", "1"), ("d", "2"))

"""Filters as SQL conditions."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.store.listed import HAS_PAIR, Wanted, chosen_by_index, conditions, result_conditions

UNIT: list[dict[str, Any]] = [
    {"since_ms": 1},
    {"until_ms": 1},
    {"agent": "a"},
    {"service": "s"},
    {"environment": "e"},
    {"user": "u"},
]
READ: list[dict[str, Any]] = [
    {"session": "s"},
    {"status": "error"},
    {"text": "t"},
    {"attribute": ("a=b",)},
    {"metric": "trace.m"},
    {"outcome": "scored"},
    {"label": "l"},
    {"success": True},
    {"success": False},
    {"incident": "0123456789ab"},
]


@pytest.mark.parametrize("given", UNIT, ids=str)
@pytest.mark.parametrize("failed", [None, True, False])
def test_filters_on_indexed_columns_are_chosen_by_the_index(given: dict[str, Any], failed: bool | None) -> None:
    assert chosen_by_index(Wanted(failed=failed, **given))


@pytest.mark.parametrize("given", READ, ids=str)
def test_other_filters_are_not_chosen_by_the_index(given: dict[str, Any]) -> None:
    assert not chosen_by_index(Wanted(**given))
    assert not chosen_by_index(Wanted(agent="a", **given))


@pytest.mark.parametrize("failed", [None, True, False])
def test_no_filter_or_failed_alone_is_not_chosen_by_the_index(failed: bool | None) -> None:
    assert not chosen_by_index(Wanted(failed=failed))


def test_of_unit_drops_the_filters_on_results() -> None:
    results = {"metric": "trace.m", "outcome": "scored", "label": "l", "success": True, "incident": "0123456789ab"}
    unit = {"since_ms": 1, "until_ms": 2, "agent": "a", "service": "s", "environment": "e", "user": "u"}
    unit |= {"session": "x", "failed": True, "text": "t", "attribute": ("a=b",)}
    assert Wanted(**unit, **results).of_unit() == Wanted(**unit)


@pytest.mark.parametrize(
    ("given", "where", "values"),
    [
        ({}, [], []),
        ({"since_ms": 0}, ["l.at >= ?"], [0]),
        ({"until_ms": 0}, ["l.at < ?"], [0]),
        ({"failed": True}, ["l.badness < ?"], [10.0]),
        ({"failed": False}, ["l.badness >= ?"], [10.0]),
    ],
)
def test_each_filter_becomes_a_condition_with_its_value(
    given: dict[str, Any], where: list[str], values: list[Any]
) -> None:
    assert conditions(Wanted(**given)) == (where, values)
    assert conditions(Wanted(**given), "o") == ([each.replace("l.", "o.") for each in where], values)


@pytest.mark.parametrize(
    ("given", "where", "values"),
    [
        ({"agent": ""}, "{t}.agent = ?", [""]),
        ({"user": "u"}, "{t}.user = ?", ["u"]),
        ({"attribute": ("a=b", "c=d")}, f"{HAS_PAIR} AND {HAS_PAIR}", ["a=b", "c=d"]),
        ({"status": "error"}, "{t}.broken = ?", [1]),
        ({"status": "ok"}, "{t}.broken = ?", [0]),
        (
            {"agent": "a", "service": "s", "environment": "e"},
            "{t}.agent = ? AND {t}.service = ? AND {t}.environment = ?",
            [*"ase"],
        ),
    ],
)
def test_a_filter_matches_a_trace_or_any_trace_of_a_session(
    given: dict[str, Any], where: str, values: list[Any]
) -> None:
    for table in ("l", "o"):
        [condition], found = conditions(Wanted(**given), table)
        assert condition.startswith(f"CASE WHEN {table}.no > 0 THEN {where.format(t=table)} ELSE EXISTS (")
        assert condition.endswith(f"AND m.no > 0 AND {where.format(t='m')}) END")
        assert found == values * 2


def test_failed_results_are_searched_only_among_failed_units() -> None:
    where, values = conditions(Wanted(metric="trace.m", success=False))
    assert (where[0].partition(" AND ")[0], values) == ("(l.badness < 10", ["trace.m", 0])
    assert conditions(Wanted(metric="trace.m", success=True))[1] == ["trace.m", 1]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({}, []),
        ({"metric": "trace.m"}, ["trace.m"]),
        ({"success": True}, [1]),
        ({"success": False}, [0]),
        ({"outcome": "scored", "label": "l"}, ["scored", "l"]),
        ({"incident": "a,b"}, ["a,b"]),
    ],
)
def test_each_filter_on_results_has_its_value(given: dict[str, Any], values: list[Any]) -> None:
    where, found = result_conditions(Wanted(**given))
    assert (len(where), found) == (len(values), values)


@pytest.mark.parametrize(
    ("text", "searched"),
    [
        ("plain", "%plain%"),
        ("50%", r"%50\%%"),
        ("a_b", r"%a\_b%"),
        ('say "hi"', r'%say \\"hi\\"%'),
        ("back\\slash", r"%back\\\\slash%"),
        ("two\nlines", r"%two\\nlines%"),
        ("ü", "%ü%"),
    ],
)
def test_a_searched_text_is_escaped_as_in_stored_facts(text: str, searched: str) -> None:
    assert conditions(Wanted(text=text))[1] == [searched] * 2

"""List filters, windows and page cursors."""

from __future__ import annotations

import base64
import inspect
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from starlette.testclient import TestClient

from pandaeval_collector.base.filters import FILTERS, Filter, meaning
from pandaeval_collector.show.api.cursors import cursor_of, position_of
from pandaeval_collector.show.api.filters import Filters, RunFilters, limited_to_window, to_wanted
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.store.listed import Wanted
from support.api import served

HOUR, DAY = 3_600_000, 86_400_000
NOW = 100 * DAY


@pytest.mark.parametrize(
    ("window", "since", "begins"),
    [
        ("1h", None, NOW - HOUR),
        ("24h", None, NOW - DAY),
        ("7d", None, NOW - 7 * DAY),
        ("all", None, None),
        ("24h", NOW - HOUR, NOW - HOUR),
        ("24h", NOW - DAY + 1, NOW - DAY + 1),
        ("24h", NOW - DAY - 1, NOW - DAY),
        ("24h", 0, NOW - DAY),
        ("7d", NOW + 1, NOW + 1),
        ("all", NOW - 50 * DAY, NOW - 50 * DAY),
        ("all", 0, 0),
    ],
)
def test_a_window_narrows_the_requested_times_and_keeps_other_filters(
    window: str, since: int | None, begins: int | None
) -> None:
    asked = Wanted(since, NOW, agent="helper", failed=True, attribute=("a=b",))
    found = limited_to_window(asked, window, NOW)
    assert found == Wanted(begins, NOW, agent="helper", failed=True, attribute=("a=b",))


def test_a_window_that_reaches_beyond_the_epoch_begins_at_the_epoch() -> None:
    assert limited_to_window(Wanted(), "1h", 5).since_ms == 0


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, Wanted()),
        ({"since": datetime(1970, 1, 2, tzinfo=UTC)}, Wanted(since_ms=DAY)),
        ({"until": datetime(1970, 1, 2, tzinfo=UTC)}, Wanted(until_ms=DAY)),
        ({"since": datetime(1970, 1, 2)}, Wanted(since_ms=DAY)),
        ({"since": datetime(1970, 1, 2, tzinfo=timezone(timedelta(hours=1)))}, Wanted(since_ms=DAY - HOUR)),
        ({"since": datetime(1970, 1, 1, 0, 0, 1, 250_000, UTC)}, Wanted(since_ms=1250)),
        ({"attribute": ["a=b", "c=d"]}, Wanted(attribute=("a=b", "c=d"))),
        ({"attribute": None}, Wanted()),
        ({"agent": "helper", "failed": False}, Wanted(agent="helper", failed=False)),
    ],
)
def test_request_filters_become_store_filters(given: dict[str, Any], wanted: Wanted) -> None:
    assert to_wanted(**given) == wanted
    assert RunFilters.model_validate(given | {"attribute": given.get("attribute") or []}).wanted() == wanted


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_a_time_without_a_zone_is_utc_in_any_local_zone() -> None:
    assert to_wanted(since=datetime(1970, 1, 2), until=datetime(1970, 1, 3)) == Wanted(DAY, 2 * DAY)


@pytest.mark.parametrize(
    "position", [(0.25, 7), (10.5, 1), (0.0, -3), (1.0, (1 << 63) - 1), (1.0, 1 - (1 << 63)), (1.7e12, 12345)]
)
def test_a_cursor_decodes_to_its_position(position: tuple[float, int]) -> None:
    cursor = cursor_of(position)
    assert cursor is not None
    assert "=" not in cursor
    assert position_of(cursor) == position


def test_no_position_gives_no_cursor() -> None:
    assert cursor_of(None) is None
    assert position_of(None) is None


def _text(value: object) -> str:
    return base64.urlsafe_b64encode(value if isinstance(value, bytes) else orjson.dumps(value)).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "nonsense",
        "é",
        _text(b"not json"),
        *map(_text, ([], [1.0], [1.0, 2, 3], 5, None, {"a": 1}, ["x", 1], [None, 1])),
        *map(_text, ([1.0, 2.0], [1.0, "2"], [1.0, True], [1.0, 1 << 63], [1.0, -(1 << 63)])),
        _text(b"[1e999, 1]"),
        _text(["inf", 1]),
        _text(["nan", 1]),
    ],
)
def test_an_invalid_cursor_is_rejected_with_400(cursor: str) -> None:
    with pytest.raises(ProblemError) as refused:
        position_of(cursor)
    assert refused.value.status == 400


@pytest.mark.parametrize("each", FILTERS, ids=lambda each: each.name)
def test_each_filter_is_a_parameter_and_a_field_that_is_empty_by_default(each: Filter) -> None:
    parameter = inspect.signature(get_args(Filters)[1].dependency).parameters[each.name]
    assert (parameter.name, parameter.kind) == (each.name, inspect.Parameter.KEYWORD_ONLY)
    assert parameter.default == ([] if each.kind == "pairs" else None)
    field = RunFilters.model_fields[each.name]
    assert field.get_default(call_default_factory=True) == parameter.default
    assert parameter.annotation.__metadata__[-1].description == field.description == meaning(each.name)


def test_a_run_without_filters_selects_every_trace() -> None:
    assert RunFilters().wanted() == Wanted()
    assert RunFilters().model_dump() == {each.name: [] if each.kind == "pairs" else None for each in FILTERS}


@pytest.mark.parametrize("path", ["/traces", "/rates", "/incidents"])
def test_an_unknown_parameter_is_an_error_that_lists_the_parameters(tmp_path: Path, path: str) -> None:
    with served(tmp_path) as app, TestClient(app, base_url="http://localhost") as client:
        answer = client.get(f"/api/v1{path}", params={"usr": "bob"})
        assert answer.status_code == 422
        assert answer.json()["detail"].startswith("usr: no such parameter; the parameters of this operation: ")
        assert "user" in answer.json()["detail"]
        assert client.get(f"/api/v1{path}", params={"user": "bob"}).status_code == 200

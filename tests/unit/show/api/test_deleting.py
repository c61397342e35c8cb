"""What a deletion may select."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pandaeval_collector.show.api.deleting import Deletion

_TRACE = "A" * 32


@pytest.mark.parametrize(
    ("given", "selector"),
    [
        ({"user": "None"}, ("user", "None")),
        ({"session": "s/1"}, ("session", "s/1")),
        ({"trace": _TRACE}, ("trace", "a" * 32)),
        ({"before": "1970-01-02"}, ("before", "86400000")),
    ],
)
def test_each_kind_of_deletion_has_a_selector(given: dict[str, Any], selector: tuple[str, str]) -> None:
    assert Deletion(**given).selector == selector


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"trace": None},
        {"user": None},
        {"before": None},
        {"user": "a", "trace": None},
        {"user": "a", "session": "s/1"},
        {"trace": _TRACE, "before": "1970-01-02"},
        {"user": "a", "session": "s/1", "trace": _TRACE, "before": "1970-01-02"},
    ],
)
def test_a_deletion_without_exactly_one_value_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="give exactly one of user, session, trace and before"):
        Deletion(**given)

"""No regular expression takes more than linear time."""

from __future__ import annotations

from functools import cache

import pytest

from support.pumping import Pattern, patterns, slow_texts

PACKAGES = ("pandaeval_otel", "pandaeval_collector", "pandaeval_lab")


@cache
def every() -> list[Pattern]:
    """Return all patterns, found on demand."""
    return patterns(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_patterns_take_linear_time(package: str) -> None:
    own = [pattern for pattern in every() if pattern.place.startswith(package)]
    assert len(own) > 10
    slow = [str(found) for pattern in own if (found := next(slow_texts(pattern), None)) is not None]
    assert not slow, "\n".join(slow)


def test_patterns_in_constants_classes_and_functions_are_found() -> None:
    places = {pattern.place.rpartition(":")[0] or pattern.place for pattern in every()}
    assert {
        "pandaeval_otel.dialects.mastra._CALLED",
        "pandaeval_otel.normal.session._CONTINUES",
        "pandaeval_collector.analysis.rules.grounding.values._VALUE",
        "pandaeval_collector.base.untrusted.secrets._PATTERNS",
        "pandaeval_collector.scoring.custom.functions",
        "pandaeval_lab.drill.faults._places.IDENTIFIER",
    } <= places

"""No text makes a regular expression of ours take more than linear time: content is hostile, and ``re`` holds the
interpreter."""

from __future__ import annotations

import pytest

from support.pumping import Pattern, patterns, slow_texts

PATTERNS = patterns(["pandaeval_otel", "pandaeval_collector", "pandaeval_lab"])


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.place)
def test_a_pattern_takes_time_in_proportion_to_the_text(pattern: Pattern) -> None:
    slow = next(slow_texts(pattern), None)
    assert slow is None, str(slow)


def test_patterns_of_every_kind_are_found() -> None:
    """In constants, in tables, compiled at their first use, of bytes, and written out in functions."""
    places = {pattern.place.rpartition(":")[0] or pattern.place for pattern in PATTERNS}
    assert {
        "pandaeval_otel.dialects.mastra._CALLED",
        "pandaeval_otel.normal.session._CONTINUES",
        "pandaeval_collector.analysis.rules.grounding.values._VALUE",
        "pandaeval_collector.base.untrusted.secrets._PATTERNS",
        "pandaeval_collector.scoring.custom.functions",
        "pandaeval_lab.drill.faults._places.IDENTIFIER",
    } <= places

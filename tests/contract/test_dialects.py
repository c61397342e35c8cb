"""Rules for every dialect."""

from __future__ import annotations

import pytest

from pandaeval_otel.base.plugins import find
from pandaeval_otel.dialects import Dialect, Reading
from pandaeval_otel.model.raw import RawEvent, RawLog, RawSpan, Scope

DIALECTS: tuple[Dialect, ...] = find("pandaeval_otel.dialects", "DIALECT")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
class TestEveryDialect:
    def test_has_a_valid_name_priority_roots_and_content_switch(self, dialect: Dialect) -> None:
        assert isinstance(dialect, Dialect)
        assert dialect.name
        assert 0 <= dialect.priority <= 100
        assert all("." not in root for root in dialect.roots), "roots are first segments of keys"
        switch = getattr(dialect, "content_switch", {})
        assert all(isinstance(text, str) and text for text in [*switch, *switch.values()])

    def test_reads_no_content_from_an_empty_span_of_another_dialect(self, dialect: Dialect) -> None:
        reading = dialect.read(RawSpan("a" * 32, "b" * 16), ())
        if reading is not None:
            assert reading.input is None
            assert reading.output is None
            assert reading.usage is None

    def test_survives_values_of_every_type_under_its_own_keys(self, dialect: Dialect) -> None:
        values = [None, "", "{", "[]", "null", 0, -1, 1.5, True, b"\xff", [], [None], {}, {"a": {"b": []}}, "x" * 5000]
        for value in values:
            attributes = {
                f"{root}.{end}": value for root in dialect.roots or {"x"} for end in ("system", "input", "0.role")
            }
            scope = Scope(dialect.scopes[0] if dialect.scopes else "any")
            name = f"{dialect.names[0]}x" if dialect.names else "x"
            event = RawEvent(name, 0, attributes)
            span = RawSpan("a" * 32, "b" * 16, name=name, attributes=attributes, events=(event,), scope=scope)
            log = RawLog("a" * 32, "b" * 16, event_name=name, body=value, attributes=attributes)
            reading = dialect.read(span, (log,))
            assert reading is None or isinstance(reading, Reading), f"{value!r} gave {type(reading)}"

    def test_reads_a_span_the_same_way_twice(self, dialect: Dialect) -> None:
        span = RawSpan("a" * 32, "b" * 16, attributes={f"{root}.x": "y" for root in dialect.roots})
        assert dialect.read(span, ()) == dialect.read(span, ())


def test_names_are_unique() -> None:
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)

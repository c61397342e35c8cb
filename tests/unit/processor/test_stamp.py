"""Attributes stamped on starting spans."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import get_current
from opentelemetry.sdk.trace import SpanLimits, TracerProvider

from pandaeval_otel import using_session
from pandaeval_otel.processor import _scope


class TestLimits:
    """Stamps respect the SDK's limits."""

    def test_long_values_are_cut(self) -> None:
        assert _stamped(SpanLimits(max_attribute_length=3)) == {"a": "1", "pandaeval.session.id": "lon"}

    def test_the_oldest_makes_room(self) -> None:
        assert _stamped(SpanLimits(max_span_attributes=1)) == {"pandaeval.session.id": "long-name"}

    def test_none_is_near(self) -> None:
        assert _stamped(SpanLimits()) == {"a": "1", "pandaeval.session.id": "long-name"}

    def test_an_sdk_that_is_built_otherwise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_scope, "_PLAIN", None)
        assert _stamped(SpanLimits()) == {"a": "1", "pandaeval.session.id": "long-name"}

    def test_this_sdk_is_built_as_we_know_it(self) -> None:
        assert _scope._PLAIN is BoundedAttributes


def _stamped(limits: SpanLimits) -> dict[str, Any]:
    provider = TracerProvider(span_limits=limits)
    with using_session("long-name"):
        span: Any = provider.get_tracer("t").start_span("s", attributes={"a": "1"})
        _scope.stamp(span, get_current())
    span.end()
    return dict(span.attributes)

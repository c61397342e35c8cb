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

    def test_the_oldest_attribute_is_dropped_at_the_limit(self) -> None:
        assert _stamped(SpanLimits(max_span_attributes=1)) == {"pandaeval.session.id": "long-name"}

    def test_all_attributes_are_kept_below_the_limits(self) -> None:
        assert _stamped(SpanLimits()) == {"a": "1", "pandaeval.session.id": "long-name"}

    def test_spans_are_stamped_with_an_unknown_sdk_implementation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_scope, "_PLAIN", None)
        assert _stamped(SpanLimits()) == {"a": "1", "pandaeval.session.id": "long-name"}

    def test_the_installed_sdk_implementation_is_known(self) -> None:
        assert _scope._PLAIN is BoundedAttributes


def _stamped(limits: SpanLimits) -> dict[str, Any]:
    provider = TracerProvider(span_limits=limits)
    with using_session("long-name"):
        span: Any = provider.get_tracer("t").start_span("s", attributes={"a": "1"})
        _scope.stamp(span, get_current())
    span.end()
    return dict(span.attributes)

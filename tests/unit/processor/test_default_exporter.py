"""What OpenTelemetry's exporter says of a backend that nobody asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pandaeval_otel.processor.auto import explain_default_exporter

_LOGGER = logging.getLogger("opentelemetry.exporter.otlp.proto.grpc.exporter")


@pytest.fixture(autouse=True)
def _filters() -> Iterator[None]:
    before = list(_LOGGER.filters)
    _LOGGER.filters.clear()
    yield
    _LOGGER.filters[:] = before


def _said(caplog: pytest.LogCaptureFixture, endpoint: str) -> list[str]:
    caplog.clear()
    for attempt in range(3):
        _LOGGER.warning("Transient error while exporting %s to %s, attempt %s", "traces", endpoint, attempt)
    return [record.getMessage() for record in caplog.records]


def test_its_failures_are_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    explain_default_exporter({})
    (said,) = _said(caplog, "localhost:4317")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in said
    assert _said(caplog, "localhost:4317") == []
    assert len(_said(caplog, "backend:4317")) == 3


@pytest.mark.parametrize("signal", ["", "_TRACES"])
def test_one_that_was_asked_for_says_all_that_it_has_to_say(caplog: pytest.LogCaptureFixture, signal: str) -> None:
    explain_default_exporter({f"OTEL_EXPORTER_OTLP{signal}_ENDPOINT": "http://localhost:4317"})
    assert len(_said(caplog, "localhost:4317")) == 3

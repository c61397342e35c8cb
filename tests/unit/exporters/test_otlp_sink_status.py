"""The status of an exporter's sink."""

from __future__ import annotations

import logging

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from pandaeval_collector.exporters._otlp.answers import BatchTooLargeError, NotServedError, OtlpSink, RefusedError

NOT_SERVED = NotServedError("unimplemented", "HTTP 404")
INVALID = RefusedError("http_400", "HTTP 400")


class Clock:
    """A manual clock."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def answer(rejected: int = 0, message: str = "") -> bytes:
    partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=message)
    return ExportTraceServiceResponse(partial_success=partial).SerializeToString()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return and clear the warnings."""
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    caplog.clear()
    return found


def test_a_sink_that_does_not_serve_the_signal_gets_no_requests_for_five_minutes() -> None:
    clock = Clock()
    sink = OtlpSink("otlp.logs", clock)
    assert (sink.off, sink.left_alone) == (False, False)
    sink.refused(3, NOT_SERVED)
    found = []
    for later in (0.0, 299.0, 300.0, 301.0):
        clock.now = 1_000.0 + later
        found.append((sink.off, sink.left_alone))
    assert found == [(True, True), (True, True), (True, False), (True, False)]
    sink.refused(3, NOT_SERVED)
    assert sink.left_alone, "it pauses for five more minutes"
    sink.took(1, b"")
    assert (sink.off, sink.left_alone) == (False, False)


def test_other_rejections_do_not_switch_the_signal_off() -> None:
    sink = OtlpSink("otlp.logs")
    sink.refused(3, INVALID)
    sink.refused(3, BatchTooLargeError("too_large", "HTTP 413"))
    assert (sink.off, sink.left_alone) == (False, False)


def test_switching_off_is_logged_once_and_switching_on_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    sink = OtlpSink("otlp.logs", Clock())
    for _ in range(2):
        sink.refused(3, NOT_SERVED)
        sink.took(1, b"")
        sink.took(1, b"")
    messages = [(record.levelname, record.getMessage()) for record in caplog.records]
    on_again = ("INFO", "otlp.logs is switched on again")
    assert messages[1:] == [on_again, on_again]
    assert messages[0] == (
        "WARNING",
        "otlp.logs is switched off, because the sink rejects this signal (HTTP 404); if this is correct, "
        "set exporters.otlp.logs.enabled: false",
    )


@pytest.mark.parametrize(
    ("rejected", "message", "lost", "messages"),
    [
        (0, "", 0, []),
        (2, "too old", 2, ["otlp.logs: the sink discarded 2 of 5 items: too old"]),
        (5, "", 5, ["otlp.logs: the sink discarded 5 of 5 items: "]),
        (9, "all", 5, ["otlp.logs: the sink discarded 9 of 5 items: all"]),
        (0, "slow down", 0, ["otlp.logs: the sink discarded 0 of 5 items: slow down"]),
    ],
)
def test_items_discarded_by_the_sink_are_counted_and_logged(
    caplog: pytest.LogCaptureFixture, rejected: int, message: str, lost: int, messages: list[str]
) -> None:
    assert OtlpSink("otlp.logs").took(5, answer(rejected, message)) == lost
    assert said(caplog) == messages


def test_a_rejection_is_logged_with_the_number_of_dropped_items(caplog: pytest.LogCaptureFixture) -> None:
    OtlpSink("otlp.logs").refused(3, INVALID)
    assert said(caplog) == ["otlp.logs: 3 items are dropped, because the sink rejects them: HTTP 400"]


def test_a_repeated_problem_is_logged_once_until_a_success_or_another_problem(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = OtlpSink("otlp.logs")
    steps = {
        "thrown away": lambda: sink.took(5, answer(1, "no")),
        "invalid": lambda: sink.refused(5, INVALID),
        "too large": lambda: sink.refused(1, BatchTooLargeError("too_large", "HTTP 413")),
        "fine": lambda: sink.took(5, b""),
    }
    message_counts = []
    for step in (
        *("thrown away", "thrown away", "fine", "thrown away", "invalid", "invalid"),
        *("too large", "invalid", "thrown away", "fine"),
    ):
        steps[step]()
        message_counts.append(len(said(caplog)))
    assert message_counts == [1, 0, 0, 1, 1, 0, 1, 1, 1, 0]

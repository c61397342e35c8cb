"""Component errors are counted; the first is logged."""

from __future__ import annotations

import logging
import pickle

import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_otel.base.component_errors import (
    DIALECT,
    ERRORS,
    EXPORTER,
    METRIC,
    ErrorRecorder,
    RaisedElsewhereError,
    raised_text,
)

_TRACEBACK = "Traceback (most recent call last)"


def raising(errors: ErrorRecorder, kind: str, name: str, times: int = 1) -> None:
    for number in range(times):
        try:
            raise LookupError(f"number {number}")
        except LookupError as error:
            errors.note(kind, name, error)


def test_the_first_error_of_each_component_is_logged_and_all_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = ErrorRecorder()
    raising(errors, DIALECT, "moody", 3)
    raising(errors, METRIC, "moody")
    raising(errors, DIALECT, "moody", 2)
    assert errors.counts() == {(DIALECT, "moody"): 5, (METRIC, "moody"): 1}
    assert [record.getMessage() for record in caplog.records] == [
        "dialect moody raised; further errors of it are only counted",
        "metric moody raised; further errors of it are only counted",
    ]
    assert caplog.text.count(_TRACEBACK) == 2
    assert caplog.text.count("LookupError: number 0") == 2
    assert all(record.levelno == logging.ERROR for record in caplog.records)


def test_component_names_are_bounded_and_printable() -> None:
    errors = ErrorRecorder()
    raising(errors, EXPORTER, "x" * 1000)
    raising(errors, EXPORTER, "two\nlines")
    assert [len(name) for _, name in errors.counts()] == [128, 10]
    assert all(name.isprintable() for _, name in errors.counts())


def test_a_process_hands_over_only_errors_since_its_last_handover(caplog: pytest.LogCaptureFixture) -> None:
    here, workers = ErrorRecorder(), [ErrorRecorder(), ErrorRecorder()]
    for worker in workers:
        worker.hand_over()
    raising(workers[0], DIALECT, "moody", 2)
    raising(workers[1], DIALECT, "moody", 3)
    assert not caplog.records
    first, second = (worker.take() for worker in workers)
    here.add(pickle.loads(pickle.dumps(first)))
    here.add(second)
    assert [worker.take() for worker in workers] == [[], []]
    raising(workers[0], DIALECT, "moody")
    again = workers[0].take()
    assert [(each.times, each.traceback) for each in again] == [(1, "")]
    here.add(again)
    assert here.counts() == {(DIALECT, "moody"): 6}
    [logged] = caplog.records
    assert logged.exc_info is not None
    assert logged.exc_info[0] is RaisedElsewhereError
    assert caplog.text.count(_TRACEBACK) == 1
    assert "LookupError: number 0" in caplog.text


def test_telemetry_counts_only_errors_since_it_was_created() -> None:
    raising(ERRORS, METRIC, "trace.moody")
    telemetry = Telemetry()
    assert not telemetry.component_errors()
    raising(ERRORS, METRIC, "trace.moody", 2)
    assert telemetry.component_errors() == {(METRIC, "trace.moody"): 2}
    [measure] = [each for each in telemetry.measures() if each.instrument.name == "pandaeval.component.errors"]
    assert (measure.instrument.kind, measure.instrument.unit, measure.value) == ("counter", "{error}", 2)
    assert measure.attributes == (("pandaeval.component", "trace.moody"), ("pandaeval.kind", "metric"))
    assert telemetry.total("pandaeval.component.errors") == 2


def test_the_summary_line_lists_components_by_number_of_errors() -> None:
    assert raised_text({(METRIC, "a"): 1, (DIALECT, "b"): 7}) == "dialect b 7 times, metric a once"

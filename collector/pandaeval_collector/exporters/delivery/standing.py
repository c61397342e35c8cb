"""Keeps the state of an exporter (up, down or off), logs its changes once, and says how long to wait before the next
attempt."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from pandaeval_collector.base.runtime.backoff import Backoff
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.exporters import RetryLaterError
from pandaeval_otel.base.component_errors import ERRORS, EXPORTER

_log = logging.getLogger(__name__)

UP, DOWN, OFF = 1, 0, -1


class SinkState:
    """The state of one exporter, for the log, for ``pandaeval.exporter.state`` and for the next attempt."""

    def __init__(self, name: str, signal: str, telemetry: Telemetry, is_off: Callable[[], bool]) -> None:
        self._name = name
        self._is_off = is_off
        self._backoff = Backoff()
        self._is_up = True
        telemetry.gauge("pandaeval.exporter.state", lambda: self.state, exporter=name.partition(".")[0], signal=signal)

    @property
    def state(self) -> int:
        """The exporter's state: 1 up, 0 down, -1 off because the sink does not take this signal."""
        if not self._is_up:
            return DOWN
        return OFF if self._is_off() else UP

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Notes what a call of the exporter inside the block raises as an error of its own, except
        :class:`RetryLaterError`."""
        try:
            yield
        except RetryLaterError:
            raise
        except Exception as error:
            ERRORS.note(EXPORTER, self._name, error)
            raise

    def succeeded(self) -> None:
        if not self._is_up:
            _log.info("%s is back", self._name)
        self._is_up = True
        self._backoff.succeeded()

    def failed(self, error: Exception) -> float:
        """Notes a failure; returns how many seconds to wait before the next try."""
        if self._is_up:
            _log.warning(
                "%s: no delivery for now, results wait (%s: %s)", self._name, type(error).__name__, told(error)
            )
        self._is_up = False
        return self._backoff.failed(error.after_s if isinstance(error, RetryLaterError) else None)

"""Keeps what is known about the sink of one signal, and logs each kind of trouble with it once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.exporters._otlp.answers import NotServedError, RefusedError, rejected

_log = logging.getLogger(__name__)
_ASK_AGAIN_S = 300.0


class OtlpSink:
    """``name`` is that of the exporter. A sink that says it does not take this signal is left alone, and asked again
    every five minutes."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._ask_at: float | None = None
        self._warned_off = False
        self._complained_of = ""

    @property
    def off(self) -> bool:
        """Whether it said that it does not take this signal."""
        return self._ask_at is not None

    @property
    def left_alone(self) -> bool:
        """Whether nothing should be sent now."""
        return self._ask_at is not None and self._clock() < self._ask_at

    def took(self, items: int, response: bytes) -> int:
        """The sink took a request of that many items. Returns how many of them it threw away."""
        if self._ask_at is not None:
            self._ask_at = None
            _log.info("%s is switched on again", self._name)
        count, message = rejected(response)
        if count or message:
            self._complain("partial_success", f"the sink threw away {count} of {items} items: {told(message)}")
        else:
            self._complained_of = ""
        return min(count, items)

    def refused(self, items: int, error: RefusedError) -> None:
        """The sink will never take that request."""
        if not isinstance(error, NotServedError):
            self._complain(error.reason, f"{items} items are dropped, the sink will not take them: {told(error)}")
            return
        self._ask_at = self._clock() + _ASK_AGAIN_S
        if not self._warned_off:
            self._warned_off = True
            _log.warning(
                "%s is switched off, since the sink does not take this signal (%s); if that is as it should be, say "
                "exporters.%s.enabled: false",
                self._name,
                error,
                self._name,
            )

    def _complain(self, kind: str, text: str) -> None:
        if kind != self._complained_of:
            self._complained_of = kind
            _log.warning("%s: %s", self._name, text)

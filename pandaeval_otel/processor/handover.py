"""The common part of both processors: arguments, a forwarder that may be shared, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pandaeval_otel.processor.forwarder import Forwarder
from pandaeval_otel.processor.inbox import NOWHERE, Inbox
from pandaeval_otel.processor.leases import Lease
from pandaeval_otel.processor.settings import Redact, enabled, settings
from pandaeval_otel.processor.telemetry import ProcessorTelemetry


class Handover:
    """Base of the processors. Arguments that are not given come from the environment (docs/instrument.md)."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        certificate: str | None = None,
        client_certificate: str | None = None,
        client_key: str | None = None,
        compression: Literal["auto", "gzip", "none"] | None = None,
        keep: Literal["all", "agents"] | None = None,
        redact: Redact | None = None,
        queue_size: int | None = None,
        held_bytes: int | None = None,
        buffer_bytes: int | None = None,
        timeout: float | None = None,
        shutdown_timeout: float | None = None,
        telemetry: ProcessorTelemetry | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._inbox = NOWHERE
        self._forwarder: Forwarder | None = None
        if enabled():
            self._lease = Lease(self, settings(**given))
            self._forwarder = self._lease.forwarder
            self._inbox = self._forwarder.inbox

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Whether all that ended before, of open traces too, was taken by the collector within the time."""
        return self._forwarder is None or self._forwarder.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Sends what there is, for at most ``shutdown_timeout`` seconds. What comes later is counted and ignored."""
        if self._forwarder is not None:
            # First: a child that is forked in the midst of this could not end the lease a second time.
            self._inbox = Inbox(self._forwarder.refuse)
            self._lease.end()

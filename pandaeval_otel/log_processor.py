"""For instrumentations that put content into log events: joined to their trace, in the application already."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping
from typing import Any, Literal

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor

from pandaeval_otel.forwarder import Forwarder, Inbox, lease
from pandaeval_otel.processor import NOWHERE
from pandaeval_otel.settings import Redact, enabled, settings
from pandaeval_otel.telemetry import ProcessorTelemetry


class PandaEvalLogProcessor(LogRecordProcessor):
    """Sends events (log records of a trace with an event name, a structured body or ``gen_ai.*`` attributes) together
    with the spans of their trace; ordinary log lines are passed over at once.

    Give it the arguments that :class:`pandaeval_otel.PandaEvalSpanProcessor` was given: with equal ones both share a
    thread and a trace goes out whole. Behaves like it in every other way.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        certificate: str | None = None,
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
        self._forwarder: Forwarder | None = lease(settings(**given)) if enabled() else None
        self._inbox = NOWHERE
        if self._forwarder is not None:
            self._inbox = self._forwarder.inbox
            self._finalizer = weakref.finalize(self, self._forwarder.release, None)
            self._finalizer.atexit = False

    def on_emit(self, log_record: Any) -> None:
        """Called by the SDK on the thread that logs."""
        try:
            record = log_record.log_record
            if record.trace_id and _is_event(record):
                inbox = self._inbox
                (inbox.append if len(inbox) < inbox.room else inbox.full)(_let_go(log_record))
        except Exception:  # noqa: BLE001, S110 - whatever a record holds, the application goes on
            pass

    def emit(self, log_data: Any) -> None:
        """The name of :meth:`on_emit` in earlier releases of the SDK."""
        self.on_emit(log_data)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As :meth:`pandaeval_otel.PandaEvalSpanProcessor.force_flush`."""
        return self._forwarder is None or self._forwarder.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """As :meth:`pandaeval_otel.PandaEvalSpanProcessor.shutdown`."""
        forwarder = self._forwarder
        if forwarder is not None and self._finalizer.detach() is not None:
            self._inbox = Inbox(forwarder.refuse)
            forwarder.release(forwarder.settings.shutdown_timeout)


def _is_event(record: Any) -> bool:
    if getattr(record, "event_name", None) or isinstance(record.body, Mapping):
        return True
    return any(key == "event.name" or key.startswith("gen_ai.") for key in record.attributes or ())


def _let_go(log_record: Any) -> Any:
    """The same record without its context, which holds on to spans and all that was attached."""
    record = log_record.log_record
    if not getattr(record, "context", None):
        return log_record
    whole, whole.log_record = copy.copy(log_record), copy.copy(record)
    whole.log_record.context = Context()
    return whole

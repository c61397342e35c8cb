"""The one line that an application adds: ``provider.add_span_processor(PandaEvalSpanProcessor())``."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Literal

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from pandaeval_otel._scope import BAGGAGE, SCOPE, current, stamp
from pandaeval_otel.forwarder import Forwarder, Inbox, lease
from pandaeval_otel.settings import Redact, enabled, settings
from pandaeval_otel.telemetry import ProcessorTelemetry


class PandaEvalSpanProcessor(SpanProcessor):
    """Sends every trace to a PandaEval collector as soon as it is complete, beside whatever else a provider exports.

    On the application's threads it stamps the ids of :mod:`pandaeval_otel.context` and appends to a bounded queue; all
    else happens on one daemon thread. It never blocks but in :meth:`force_flush` and :meth:`shutdown`, never raises,
    and drops whole traces, counted, where it must. Arguments that are not given come from the environment
    (docs/instrument.md). Raises :class:`ValueError` for arguments that make no sense.
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
            # An application that lets go of its provider without a shutdown must not be left with our thread.
            self._finalizer = weakref.finalize(self, self._forwarder.release, None)
            self._finalizer.atexit = False  # at exit the provider shuts down in its own time

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Called by the SDK on the thread that starts the span."""
        try:
            context = current() if parent_context is None else parent_context
            # Not the span itself: it would live on until the worker has seen it, which costs more than all of this. And
            # not by the property, which costs more than the append.
            item: Any = span._context
            if context and (SCOPE in context or BAGGAGE in context):
                scope = stamp(span, context)
                if scope is not None:
                    item = (item, scope)
            inbox = self._inbox
            if len(inbox) < inbox.room:
                inbox.append(item)
            else:
                inbox.full(item)
        except Exception:  # noqa: BLE001, S110 - whatever a context holds, the application's span starts
            pass

    def on_end(self, span: ReadableSpan) -> None:
        """Called by the SDK on the thread that ends the span."""
        inbox = self._inbox
        if len(inbox) < inbox.room:
            inbox.append(span)
        else:
            inbox.full(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Whether all spans that ended before, of open traces too, were taken by the collector within the time."""
        return self._forwarder is None or self._forwarder.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Sends what there is, for at most ``shutdown_timeout`` seconds. Later spans are counted and ignored."""
        forwarder = self._forwarder
        if forwarder is not None and self._finalizer.detach() is not None:
            self._inbox = Inbox(forwarder.refuse)
            forwarder.release(forwarder.settings.shutdown_timeout)


NOWHERE = Inbox(lambda item: None)
"""Takes everything and keeps nothing."""

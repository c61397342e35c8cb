"""The span processor."""

from __future__ import annotations

from typing import Any, Unpack

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from pandaeval_otel.processor._scope import BAGGAGE, SCOPE, current, stamp
from pandaeval_otel.processor.forwarder import Forwarder, Lease
from pandaeval_otel.processor.settings import Options, enabled, settings
from pandaeval_otel.processor.worker import NOWHERE, Inbox


class Handover:
    """Base class of both processors. Equal settings share a forwarder."""

    def __init__(self, endpoint: str | None = None, **options: Unpack[Options]) -> None:
        self._inbox = NOWHERE
        self._forwarder: Forwarder | None = None
        if enabled():
            self._lease = Lease(self, settings(endpoint=endpoint, **options))
            self._forwarder = self._lease.forwarder
            self._inbox = self._forwarder.inbox

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until the collector has all ended spans, also of open traces.

        Returns ``False`` after the timeout, or if spans were dropped meanwhile.
        """
        return self._forwarder is None or self._forwarder.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Send everything within ``shutdown_timeout`` seconds. Later spans and events count as dropped."""
        if self._forwarder is not None:
            # First: a child forked in the middle of this could not end the lease again.
            self._inbox = Inbox(self._forwarder.refuse)
            self._lease.end()


class PandaEvalSpanProcessor(Handover, SpanProcessor):
    """Sends each completed trace to a PandaEval collector, beside other exporters.

    Application threads only stamp ids and append to a bounded queue; a daemon thread sends. Only :meth:`force_flush`
    and :meth:`shutdown` block, and none raises. Under overload the processor drops and counts whole traces. Missing
    arguments come from the environment (docs/reference/configuration.md). The constructor raises :class:`ValueError`
    for wrong arguments and an unusable ``PANDAEVAL_REDACTOR``.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> provider = TracerProvider()
    >>> provider.add_span_processor(PandaEvalSpanProcessor(endpoint="localhost:4327"))
    >>> provider.shutdown()
    """

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Queue the start of ``span``, on the starting thread."""
        try:
            context = current() if parent_context is None else parent_context
            # Not the span: it would live until the worker has seen it, which costs more than all of this. Nor the
            # public property, which costs more than the append.
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
        except Exception:  # noqa: BLE001, S110 - a context must not prevent the application's span
            pass

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the ended ``span``, on the ending thread."""
        inbox = self._inbox
        if len(inbox) < inbox.room:
            inbox.append(span)
        else:
            inbox.full(span)

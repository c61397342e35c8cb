"""The one line that an application adds: ``provider.add_span_processor(PandaEvalSpanProcessor())``."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from pandaeval_otel.processor._scope import BAGGAGE, SCOPE, current, stamp
from pandaeval_otel.processor.handover import Handover


class PandaEvalSpanProcessor(Handover, SpanProcessor):
    """Sends every trace to a PandaEval collector as soon as it is complete, beside whatever else a provider exports.

    On the application's threads it stamps the ids of :mod:`pandaeval_otel.processor.context` and appends to a bounded
    queue; all else happens on one daemon thread. It never blocks but in :meth:`force_flush` and :meth:`shutdown`, never
    raises, and drops whole traces, counted, where it must. Arguments that are not given come from the environment
    (docs/instrument.md). Raises :class:`ValueError` for arguments that make no sense.
    """

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

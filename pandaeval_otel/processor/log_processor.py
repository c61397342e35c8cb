"""Joins log events of instrumentations that put content into them to their trace, in the application already."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor

from pandaeval_otel.processor.handover import Handover


class PandaEvalLogProcessor(Handover, LogRecordProcessor):
    """Sends events (log records of a trace with an event name, a structured body or ``gen_ai.*`` attributes) together
    with the spans of their trace; ordinary log lines are passed over at once.

    Give it the arguments that :class:`pandaeval_otel.PandaEvalSpanProcessor` was given: with equal ones both share a
    thread and a trace goes out whole. Behaves like it in every other way.
    """

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

"""The processor for log events, a module of its own: the SDK's logs take time to import."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

# The worker's thread uses this module first. If a fork interrupted its import there, the child could never import it.
import opentelemetry.exporter.otlp.proto.common._log_encoder  # noqa: F401
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor

from pandaeval_otel.processor.processors import Handover


class PandaEvalLogProcessor(Handover, LogRecordProcessor):
    """Sends log events with the spans of their trace: records with an event name, structured body or ``gen_ai.*``
    attributes.

    Pass the arguments of :class:`pandaeval_otel.PandaEvalSpanProcessor`, so that both share a thread and traces arrive
    whole.
    """

    def on_emit(self, log_record: Any) -> None:
        """Queue an event within a trace, on the logging thread."""
        try:
            record = log_record.log_record
            if record.trace_id and _is_event(record):
                inbox = self._inbox
                (inbox.append if len(inbox) < inbox.room else inbox.full)(_let_go(log_record))
        except Exception:  # noqa: BLE001, S110 - a record must not disturb the application
            pass

    emit = on_emit  # earlier releases of the SDK call it by this name


def _is_event(record: Any) -> bool:
    if getattr(record, "event_name", None) or isinstance(record.body, Mapping):
        return True
    return any(key == "event.name" or key.startswith("gen_ai.") for key in record.attributes or ())


def _let_go(log_record: Any) -> Any:
    """Return the record without its context, which would keep spans alive."""
    record = log_record.log_record
    if not getattr(record, "context", None):
        return log_record
    whole, whole.log_record = copy.copy(log_record), copy.copy(record)
    whole.log_record.context = Context()
    return whole

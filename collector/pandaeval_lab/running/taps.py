"""Connects processors of a run with the providers of this process."""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor


class Tap(SpanProcessor, LogRecordProcessor):
    """Passes everything to ``target``. A provider cannot remove a processor, so each provider keeps a single tap."""

    target: Any = None

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if self.target is not None:
            self.target.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        if self.target is not None:
            self.target.on_end(span)

    def on_emit(self, log_record: Any) -> None:
        if self.target is not None:
            self.target.on_emit(log_record)

    emit = on_emit  # the name in earlier releases of the SDK

    def shutdown(self) -> None:
        """Have no effect: the run shuts its processors down."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.target is None or bool(self.target.force_flush(timeout_millis))


_taps: WeakKeyDictionary[Any, Tap] = WeakKeyDictionary()


def connect(kind: type, add: str, target: Any) -> list[Tap]:
    """Connect ``target`` with each provider of this class in the process, also if it is not the global provider.

    ``add``: the method that adds a processor. Returns the taps.
    """
    for provider in [each for each in gc.get_objects() if issubclass(type(each), kind)]:
        if provider not in _taps:
            _taps[provider] = Tap()
            getattr(provider, add)(_taps[provider])
    taps = [tap for provider, tap in _taps.items() if isinstance(provider, kind)]
    for tap in taps:
        tap.target = target
    return taps

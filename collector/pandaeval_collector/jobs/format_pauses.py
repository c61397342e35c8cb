"""Pauses a model after invalid replies on three traces in a row, with a trial every ten minutes."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import orjson

from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.reader import PAUSED

MOST_TRACES = 3
"""Traces in a row without a valid reply, after which a model is paused."""
PAUSE_S = 600.0
_log = logging.getLogger(__name__)


def cause(model: str) -> str:
    return (
        f"the judge {model} is paused: it gave no valid reply for {MOST_TRACES} traces in a row; one call every "
        f"{PAUSE_S / 60:.0f} minutes tries it again; choose another judge.model, or set judge.parameters: "
        "{response_format: {type: json_schema}}"
    )


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether a model may be called now, else when. ``is_test``: with a single call only."""

    until: float = 0.0
    is_test: bool = False


class FormatPauses:
    """Pauses of a store's models, by its running clock. For a single event loop."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._until: dict[str, float] = orjson.loads(store.reads.get(PAUSED) or "{}")
        self._in_vain: dict[str, set[bytes]] = {}
        """Traces without a valid reply, by model, since its last valid reply."""

    def paused_until(self, model: str) -> float:
        """Return the end of a model's pause; 0 for now."""
        until = self._until.get(model, 0.0)
        return until if until > self._store.clock.running() else 0.0

    def permit(self, model: str) -> Permit:
        """Return whether a model may be called. A paused model gets a test every ten minutes."""
        if (until := self.paused_until(model)) or model not in self._until:
            return Permit(until)
        self._pause(model, self._store.clock.running())
        return Permit(is_test=True)

    def note(self, model: str, trace_id: bytes, is_valid: bool) -> None:
        """Record whether any reply about a trace was valid."""
        if is_valid:
            self._in_vain.pop(model, None)
            self._end_pause(model)
            return
        in_vain = self._in_vain.setdefault(model, set())
        in_vain.add(trace_id)
        if len(in_vain) >= MOST_TRACES and model not in self._until:
            _log.warning("%s", cause(model))
            self._pause(model, self._store.clock.running())

    def _end_pause(self, model: str) -> None:
        if self._until.pop(model, None) is not None:
            _log.info("the judge %s gives valid replies again", model)
            self._keep()

    def _pause(self, model: str, now: float) -> None:
        self._until[model] = now + PAUSE_S
        self._keep()

    def _keep(self) -> None:
        self._store.put(PAUSED, orjson.dumps(self._until).decode())

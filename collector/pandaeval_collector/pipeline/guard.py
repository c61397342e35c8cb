"""Watches the store of a running collector: are its files still in place, and can it be written to again?"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections.abc import Callable

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_RESCUE_AGAIN_S = 10.0
_PROBE_BYTES = 64 << 10
"""Bytes of the trial write, as many as a request brings: that one byte fits on the disk says little."""


class Guard:
    """Checks the store once a second. On one event loop. After a failed write it tries a small one itself: senders
    avoid a collector that is not ready, so no request would show that writing works again. When files were taken away,
    it saves what the open files still hold and then calls ``on_gone`` once; until saving succeeds the process has to
    live, since it alone still has the content."""

    def __init__(self, store: Store, telemetry: Telemetry, on_gone: Callable[[], None]) -> None:
        self._store, self._telemetry, self._on_gone = store, telemetry, on_gone
        self._is_gone = False

    @property
    def trouble(self) -> str:
        """Why the collector cannot accept requests now, in words; empty while it can."""
        if self._store.gone:
            return f"the store is gone: {self._store.gone}"
        return f"the store cannot be written to: {self._store.failing}" if self._store.failing else ""

    def start(self) -> Every:
        """Starts the checks; returns what stops them."""
        return Every(_LOOK_S, self._look, "pandaeval-guard", grace=0.0)

    async def _look(self) -> float | None:
        if not self._is_gone and not await asyncio.to_thread(self._store.look):
            if self._store.failing:
                try:
                    await asyncio.wrap_future(self._store.put("probe", "." * _PROBE_BYTES))
                    await asyncio.wrap_future(self._store.put("probe", ""))
                    _log.info("the store can be written to again")
                except sqlite3.Error:
                    self._telemetry.add("pandaeval.store.errors", "probe")
            return None
        if not self._is_gone:
            self._is_gone = True
            self._telemetry.add("pandaeval.store.errors", "gone")
            _log.error("nothing is accepted any more: in %s, %s", self._store.path, self._store.gone)
        try:
            await asyncio.to_thread(self._store.rescue)
        except (OSError, sqlite3.Error) as error:
            _log.error(
                "what was in the store cannot be saved (%s); the collector keeps it open and tries again in %.0f s, "
                "and when it is stopped",
                error,
                _RESCUE_AGAIN_S,
            )
            return _RESCUE_AGAIN_S
        self._on_gone()
        return math.inf

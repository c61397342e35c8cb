"""What a running collector throws away: raw spans after the late window, and all else after the retention."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Collection

from pandaeval_collector.store import Store
from pandaeval_collector.telemetry import Telemetry

_log = logging.getLogger(__name__)

_FORGET = 2000
_CROWDED, _FULL = 0.7, 0.9
"""Parts of the disk budget between which the retention goes down to nothing but the late window."""


class Upkeep:
    """Keeps one store within its bounds; seconds. ``keep``: traces whose spans are still needed."""

    def __init__(
        self,
        store: Store,
        late_window: float,
        retention: float,
        telemetry: Telemetry,
        keep: Callable[[], Collection[bytes]],
    ) -> None:
        self._store, self._telemetry, self._keep = store, telemetry, keep
        self._late_window, self._retention = late_window, retention

    async def run(self) -> None:
        """One round; a store that fails just now is tidied up in the next."""
        forgotten = _FORGET
        try:
            while forgotten == _FORGET:
                work = self._store.forget(self._late_window, self._kept_for(), time.time(), self._keep(), limit=_FORGET)
                forgotten = await asyncio.wrap_future(work)
            await asyncio.to_thread(self._store.checkpoint)
        except sqlite3.Error as error:
            _log.error("the store could not be tidied up (%s)", error)
            self._telemetry.add("pandaeval.store.errors", "upkeep")

    def _kept_for(self) -> float:
        """What is configured, and less while the disk budget runs out: old results go before new spans are refused."""
        fill = self._store.size_bytes() / self._store.max_bytes
        spare = (_FULL - fill) / (_FULL - _CROWDED)
        return max(self._late_window, self._retention * min(1.0, max(0.0, spare)))

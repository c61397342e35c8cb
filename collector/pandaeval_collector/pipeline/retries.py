"""Handles failures in the pipeline: repeats work while the store fails, and leaves work that keeps failing to the next
start of the collector."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pandaeval_collector.base.telemetry import Telemetry

_log = logging.getLogger(__name__)

_RETRY_S = 1.0
T = TypeVar("T")


class Retries:
    """Implements :class:`pandaeval_collector.pipeline.commits.Patiently`. Once ``stopping`` is set, errors are raised
    instead of repeated or logged. On one event loop."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.stopping = False

    async def __call__(self, work: Callable[[], Awaitable[T]], /) -> T:
        """Calls ``work`` until the store does not fail, once a second."""
        while True:
            try:
                return await work()
            except sqlite3.OperationalError as error:
                _log.error("the store fails (%s); trying again in %.0f s", error, _RETRY_S)
                self._telemetry.add("pandaeval.store.errors", "retried")
                if self.stopping:
                    raise
                await asyncio.sleep(_RETRY_S)

    async def or_left(self, work: Awaitable[None], what: str) -> None:
        """Awaits ``work``, the last resort: if it raises, the store still has what it was about, and the next start
        takes that up again. ``what`` names it in the log."""
        try:
            await work
        except Exception:  # the pipeline has to go on with other traces, whatever these raised
            if self.stopping:
                raise
            _log.exception("%s could not be dealt with before the next start", what)
            self._telemetry.add("pandaeval.store.errors", "left")

"""Measures how long partitions are without exactly one running collector."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Collection
from types import TracebackType

from support.collector import CollectorProcess

_LOOK_S = 0.5


class Share:
    """Polls the collectors that are ``there`` on its own thread. ``partitions``: of all shared topics."""

    def __init__(self, partitions: int, there: Callable[[], Collection[CollectorProcess]]) -> None:
        self._partitions, self._there = partitions, there
        self._missing_s = 0.0
        self._whole, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="share", daemon=True)

    def __enter__(self) -> Share:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(60)

    def missing_s(self) -> float:
        """Return the seconds with unassigned or doubly assigned partitions."""
        return self._missing_s

    def wait_whole(self, timeout: float) -> None:
        """Wait until each partition has one running collector."""
        self._whole.clear()
        assert self._whole.wait(timeout), f"partitions without a collector after {timeout} s"

    def _look_on(self) -> None:
        looked = time.monotonic()
        while not self._ended.wait(_LOOK_S):
            there = self._there()
            whole = sum(map(_held, there)) == self._partitions and there == self._there()
            now = time.monotonic()
            if whole:
                self._whole.set()
            else:
                self._missing_s += now - looked
            looked = now


def _held(collector: CollectorProcess) -> int:
    with contextlib.suppress(OSError, http.client.HTTPException):  # the collector is starting or ending
        counts = collector.counts()
        return counts["log_partitions", "taken", ""] - counts["log_partitions", "released", ""]
    return 0

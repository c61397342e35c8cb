"""Whether collectors that share topics have all partitions, looked at twice a second, and for how long they had not."""

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
    """Asks those that are ``there`` on a thread of its own. ``partitions``: of all topics that they share. A context
    manager."""

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
        """The seconds so far in which a partition was with no collector that ran, or with two."""
        return self._missing_s

    def wait_whole(self, timeout: float) -> None:
        """Return when each partition is with one collector that runs. Raises ``AssertionError``."""
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
    with contextlib.suppress(OSError, http.client.HTTPException):  # it starts, or ends just now
        counts = collector.counts()
        return counts["log_partitions", "taken", ""] - counts["log_partitions", "released", ""]
    return 0

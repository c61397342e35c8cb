"""Concurrent disk latency."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_BYTES, _EVERY_S = 16384, 0.01


class DiskProbe:
    """Writes 16 KiB with ``fdatasync`` 100 times a second, as a context manager. ``took``: sorted seconds."""

    def __init__(self, folder: Path) -> None:
        self.took: list[float] = []
        self._file, self._stop = folder / "probe", threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> DiskProbe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.took.sort()

    def ms(self, quantile: float) -> float:
        """Return a quantile in milliseconds."""
        return 1e3 * self.took[min(len(self.took) - 1, int(quantile * len(self.took)))]

    def _run(self) -> None:
        file = os.open(self._file, os.O_CREAT | os.O_WRONLY)
        content = os.urandom(_BYTES)
        try:
            while not self._stop.is_set():
                began = time.perf_counter()
                os.pwrite(file, content, len(self.took) % 1024 * _BYTES)
                os.fdatasync(file)
                took = time.perf_counter() - began
                self.took.append(took)
                self._stop.wait(max(0.0, _EVERY_S - took))
        finally:
            os.close(file)

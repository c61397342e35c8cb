"""Which traces were under way when a process died: kept in a small file beside the store, so that a trace that ends the
process is not taken up by every one after it in the same way.

The file is written at each batch and never synced: what a process wrote survives its death, if not the machine's. A
trace in it at a start is a *suspect* until it is decided. Dying together proves little, so a suspect is understood by a
process of its own (:mod:`pandaeval_collector.pipeline.trial`); one over which the collector died twice all the same is
decided alone, and one that was alone under way at the next two deaths is not tried any more. Whoever is decided is
clear.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

_log = logging.getLogger(__name__)

FILE_NAME = "underway"
TOGETHER = 2
"""So many deaths count where others were under way too; from there on a trace is decided alone."""
HOPELESS = 4
"""Deaths after which a trace is not tried any more."""


class UnderWay:
    """Traces that are being decided, and suspects with the number of deaths that they were part of. One thread at a
    time. What cannot be written is said once, and missing at the next start."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._file: int | None = None
        self._now: dict[bytes, None] = {}
        self._told = False
        self.suspects: dict[bytes, int] = {}

    def resume(self, is_open: Callable[[bytes], bool]) -> None:
        """Reads what the process before left, counts its death, and notes that for good. ``is_open``: whether a trace
        waits for its decision."""
        try:
            found = self._path.read_text("ascii", "replace") if self._path.exists() else ""
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            self._tell(error)
            return
        self.suspects.update({trace_id: deaths for trace_id, deaths in _deaths(found).items() if is_open(trace_id)})
        self._write()
        os.fsync(self._file)
        if self.suspects:
            _log.warning("%d traces were under way when the process before ended", len(self.suspects))

    def begin(self, trace_ids: Iterable[bytes]) -> None:
        """These are being decided now."""
        self._now.update(dict.fromkeys(trace_ids))
        self._write()

    def end(self, trace_ids: Iterable[bytes], decided: bool = True) -> None:
        """These are not under way any more; ``decided``: and clear."""
        for trace_id in trace_ids:
            self._now.pop(trace_id, None)
            if decided:
                self.suspects.pop(trace_id, None)
        self._write()

    def deaths(self, trace_id: bytes) -> int:
        """How many processes died over it, as far as is known."""
        return self.suspects.get(trace_id, 0)

    def close(self) -> None:
        """The process ends as it should."""
        self._now.clear()
        self._write()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self) -> None:
        if self._file is None:
            return
        lines = [f"{trace_id.hex()} {deaths}\n" for trace_id, deaths in self.suspects.items()]
        lines += [f"{trace_id.hex()} now\n" for trace_id in self._now]
        data = "".join(lines).encode()
        try:
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            _log.error("%s cannot be written (%s): a trace that ends the process will do so again", self._path, error)


def _deaths(text: str) -> dict[bytes, int]:
    """The suspects that a process left when it died. A line that is only half there is passed over."""
    known: dict[bytes, int] = {}
    now: list[bytes] = []
    for line in text.splitlines():
        name, _, said = line.partition(" ")
        try:
            trace_id = bytes.fromhex(name)
        except ValueError:
            continue
        if len(trace_id) != 16:
            continue
        if said == "now":
            now.append(trace_id)
        elif said.isdecimal():
            known[trace_id] = int(said)
    for trace_id in now:
        deaths = known.get(trace_id, 0)
        known[trace_id] = deaths + 1 if len(now) == 1 else max(deaths, min(deaths + 1, TOGETHER))
    return known

"""Notes in a small file beside the store which traces are being decided, so that a trace that ends the process does not
end every process after it in the same way.

The file is written at each batch and never synced: what a process wrote survives its death, if not the machine's. A
trace that the file holds at a start is a *suspect* until it is decided. That a process died while it was being decided
proves little, so a suspect is understood in a process of its own (:mod:`pandaeval_collector.pipeline.suspects`); if the
collector died twice over it all the same, it is decided alone. From then on a death counts only if the collector itself
worked on that trace at the moment: somebody who kills it while another process understands the trace, or while it waits
to be committed, proves nothing against it. After four such deaths it is not tried any more: whoever kills the collector
each second hits those moments, too. A suspect that was decided is one no longer.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)

FILE_NAME = "underway"
TOGETHER = 2
"""Deaths that count whatever the collector did at the moment; from there on a trace is decided alone."""
HOPELESS = 6
"""Deaths after which a trace is not tried any more, the last four of which came while the collector worked on it."""


class UnderWay:
    """The traces that are being decided, and the suspects with the number of deaths that each was part of. One thread
    at a time. A failed write of the file is logged once; the next start then lacks that note."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._file: int | None = None
        self._now: dict[bytes, None] = {}
        self._at: bytes | None = None
        self._told = False
        self.suspects: dict[bytes, int] = {}

    def resume(self, is_open: Callable[[bytes], bool]) -> None:
        """Reads the notes of the process before, counts its death for each trace in them, and writes that to the file.
        ``is_open``: whether a trace still waits for its decision."""
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
        """Notes that these traces are being decided from now on."""
        self._now.update(dict.fromkeys(trace_ids))
        self._write()

    @contextlib.contextmanager
    def at(self, trace_ids: Sequence[bytes]) -> Iterator[None]:
        """Inside the block this process works on these traces itself. Only one that is decided alone is noted: nothing
        else is begun or ended meanwhile."""
        alone = trace_ids[0] if len(trace_ids) == 1 and self.deaths(trace_ids[0]) >= TOGETHER else None
        if alone is None:
            yield
            return
        self._at = alone
        self._write()
        try:
            yield
        finally:
            self._at = None
            self._write()

    def end(self, trace_ids: Iterable[bytes], decided: bool = True) -> None:
        """Removes traces from the notes; with ``decided`` they are no suspects any more."""
        for trace_id in trace_ids:
            self._now.pop(trace_id, None)
            if decided:
                self.suspects.pop(trace_id, None)
        self._write()

    def deaths(self, trace_id: bytes) -> int:
        """Returns how many processes died while this trace was being decided, as far as the notes say."""
        return self.suspects.get(trace_id, 0)

    def close(self) -> None:
        """Empties the notes and closes the file: the process ends without an error."""
        self._now.clear()
        self._write()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self) -> None:
        if self._file is None:
            return
        lines = [f"{trace_id.hex()} {deaths}\n" for trace_id, deaths in self.suspects.items()]
        lines += [f"{trace_id.hex()} {'at' if trace_id == self._at else 'now'}\n" for trace_id in self._now]
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
    """Reads the suspects that a dead process left in the file. Skips a line that is only half written."""
    known: dict[bytes, int] = {}
    now: dict[bytes, str] = {}
    for line in text.splitlines():
        name, _, said = line.partition(" ")
        try:
            trace_id = bytes.fromhex(name)
        except ValueError:
            continue
        if len(trace_id) != 16:
            continue
        if said in ("now", "at"):
            now[trace_id] = said
        elif said.isdecimal():
            known[trace_id] = int(said)
    for trace_id, said in now.items():
        deaths = known.get(trace_id, 0)
        known[trace_id] = deaths + 1 if said == "at" else max(deaths, min(deaths + 1, TOGETHER))
    return known

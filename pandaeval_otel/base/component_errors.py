"""Records exceptions of components: dialects, metrics, exporters, embedders and faults, also from other packages.

The caller continues without the failed component and records the error here. Errors are counted by component name.
The first error of each component is logged with its traceback. A worker process reports its errors to its parent
(:meth:`ErrorRecorder.hand_over`).
"""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import NamedTuple

from pandaeval_otel.base.names import bounded

_log = logging.getLogger(__name__)

DIALECT, METRIC, EXPORTER, EMBEDDER, FAULT = "dialect", "metric", "exporter", "embedder", "fault"
"""Kinds of components."""

Component = tuple[str, str]
"""Kind and name of a component."""


class RaisedErrors(NamedTuple):
    """Errors of a component in a worker process: their number since the last report and the first traceback. The
    traceback is ``""`` if it was reported before.
    """

    kind: str
    name: str
    times: int
    traceback: str


class RaisedElsewhereError(Exception):
    """An exception of a component in another process. Its text is the traceback from there."""


class ErrorRecorder:
    """Counts component errors since the process started, and logs the first of each component. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Component] = Counter()
        self._known: set[Component] = set()
        self._hands_over = False
        self._tracebacks: dict[Component, str] = {}

    def note(self, kind: str, name: str, error: BaseException) -> None:
        """Count an error of component ``name`` (cut at 128 characters). Logs the first error with its traceback."""
        self._take_in((kind, bounded(name)), 1, error)

    def counts(self) -> Counter[Component]:
        """Return how often each component raised."""
        with self._lock:
            return Counter(self._counts)

    def hand_over(self) -> None:
        """Stop logging here. The parent process logs the errors from :meth:`take`."""
        self._hands_over = True

    def take(self) -> list[RaisedErrors]:
        """Return and reset the errors since the last call, for the parent process."""
        with self._lock:
            told = [RaisedErrors(*each, times, self._tracebacks.pop(each, "")) for each, times in self._counts.items()]
            self._counts.clear()
        return told

    def add(self, told: Iterable[RaisedErrors]) -> None:
        """Count and log the errors that a worker process returned from :meth:`take`."""
        for each in told:
            self._take_in((each.kind, each.name), each.times, RaisedElsewhereError(f"\n{each.traceback}"))

    def _take_in(self, component: Component, times: int, error: BaseException) -> None:
        with self._lock:
            self._counts[component] += times
            if component in self._known:
                return
            self._known.add(component)
            if self._hands_over:
                self._tracebacks[component] = "".join(traceback.format_exception(error))
                return
        _log.error("%s %s raised; further errors of it are only counted", *component, exc_info=error)


ERRORS = ErrorRecorder()
"""Exceptions of components in this process."""


def raised_text(counts: Mapping[Component, int]) -> str:
    """Format counts, highest first: ``dialect skylark 3 times, metric trace.brevity once``."""
    return ", ".join(
        f"{kind} {name} {'once' if times == 1 else f'{times} times'}"
        for (kind, name), times in Counter(counts).most_common()
    )

"""What components raised: dialects, metrics, exporters, embedders and faults, of ours and of other packages.

Whoever calls a component goes on without it when it raises, and notes the error here: it is counted under the
component's name, and the first of each component in a process is logged with its traceback. A process that works for
another one hands its errors over instead of logging them (:meth:`ErrorRecorder.hand_over`).
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
    """What a process reports about one component to the process that it works for: how often the component raised since
    the last report, and the traceback of its first error, ``""`` where that was reported before."""

    kind: str
    name: str
    times: int
    traceback: str


class RaisedElsewhereError(Exception):
    """An error of a component in another process; its text is the traceback there."""


class ErrorRecorder:
    """Counts the errors that components raised since the process began, and logs the first of each. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Component] = Counter()
        self._known: set[Component] = set()
        self._hands_over = False
        self._tracebacks: dict[Component, str] = {}

    def note(self, kind: str, name: str, error: BaseException) -> None:
        """Count an error of the component ``name``, whose name is kept at no more than 128 characters, and log it
        with its traceback if it is the first."""
        self._take_in((kind, bounded(name)), 1, error)

    def counts(self) -> Counter[Component]:
        """Return how often each component raised."""
        with self._lock:
            return Counter(self._counts)

    def hand_over(self) -> None:
        """Stop logging in this process: the process that it works for logs what :meth:`take` returns."""
        self._hands_over = True

    def take(self) -> list[RaisedErrors]:
        """Return the errors since the last call, for the process that this one works for, and count anew."""
        with self._lock:
            told = [RaisedErrors(*each, times, self._tracebacks.pop(each, "")) for each, times in self._counts.items()]
            self._counts.clear()
        return told

    def add(self, told: Iterable[RaisedErrors]) -> None:
        """Count and log the errors that a process which works for this one returned from :meth:`take`."""
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
"""What components raised in this process."""


def raised_text(counts: Mapping[Component, int]) -> str:
    """Return counts as a text, highest first: ``dialect skylark 3 times, metric trace.brevity once``."""
    return ", ".join(
        f"{kind} {name} {'once' if times == 1 else f'{times} times'}"
        for (kind, name), times in Counter(counts).most_common()
    )

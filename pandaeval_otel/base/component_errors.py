"""Records exceptions of components, such as dialects, metrics and exporters, by component name.

The first error of each component is logged with its traceback. Worker processes report to their parent.
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
    """Errors of a worker's component since the last report. ``traceback`` is ``""`` if reported before."""

    kind: str
    name: str
    times: int
    traceback: str


class RaisedElsewhereError(Exception):
    """An exception in another process. Its text is the traceback."""


class ErrorRecorder:
    """Counts component errors and logs the first of each. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Component] = Counter()
        self._known: set[Component] = set()
        self._hands_over = False
        self._tracebacks: dict[Component, str] = {}

    def note(self, kind: str, name: str, error: BaseException) -> None:
        """Count an error of component ``name`` (cut at 128 characters)."""
        self._take_in((kind, bounded(name)), 1, error)

    def counts(self) -> Counter[Component]:
        with self._lock:
            return Counter(self._counts)

    def hand_over(self) -> None:
        """Stop logging here. The parent logs the errors from :meth:`take`."""
        self._hands_over = True

    def take(self) -> list[RaisedErrors]:
        with self._lock:
            errors = [
                RaisedErrors(*each, times, self._tracebacks.pop(each, "")) for each, times in self._counts.items()
            ]
            self._counts.clear()
        return errors

    def add(self, errors: Iterable[RaisedErrors]) -> None:
        for each in errors:
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

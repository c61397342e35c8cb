"""Fail points where a test can kill this process.

``PANDAEVAL_FAIL_POINT=after_commit:17`` sends SIGKILL on the 17th ``after_commit``. Separate several with commas.

In span order: ``after_decode`` ``before_commit`` ``after_commit`` ``after_ack`` ``before_decide`` ``after_decide``
``after_decision_commit`` ``before_export`` ``after_export``. Others: ``during_resume``, ``in_worker``, ``in_deletion``,
and ``over_trace=4BF9…:1`` by trace ID prefix.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass

_log = logging.getLogger(__name__)

VARIABLE = "PANDAEVAL_FAIL_POINT"
POINTS = (
    "after_decode",
    "before_commit",
    "after_commit",
    "after_ack",
    "before_decide",
    "after_decide",
    "after_decision_commit",
    "before_export",
    "after_export",
    "during_resume",
    "in_worker",
    "in_deletion",
    "over_trace",
)
_HANDED_OVER_S = 0.005
_armed: dict[str, _Point] = {}
_lock = threading.Lock()


@dataclass(slots=True)
class _Point:
    left: int
    about: str


def arm(environ: Mapping[str, str]) -> None:
    """Set exactly the fail points in ``environ``. Raises ``ValueError`` for an unknown point."""
    _armed.clear()
    for entry in filter(None, environ.get(VARIABLE, "").split(",")):
        name, _, count = entry.strip().partition(":")
        name, _, about = name.partition("=")
        if name not in POINTS or not count.isdecimal():
            raise ValueError(f"{VARIABLE}: {entry!r} is not POINT:COUNT")
        _armed[name] = _Point(int(count), about.lower())
    if _armed:
        _log.warning("fail points are armed: %s", environ[VARIABLE])


def reach(name: str) -> None:
    """Kill this process if the point is armed and due. Any thread."""
    point = _armed.get(name)
    if point is None:
        return
    with _lock:
        point.left -= 1
        due = point.left == 0
    if due:
        os.kill(os.getpid(), signal.SIGKILL)


def reach_over(name: str, about: str) -> None:
    """Call :func:`reach` if ``about`` begins with the point's prefix. Any thread."""
    point = _armed.get(name)
    if point is not None and point.about and about.startswith(point.about):
        reach(name)


def lasting(value: str) -> str:
    """Return the part of :data:`VARIABLE` to arm in a successor process."""
    return ",".join(entry for entry in value.split(",") if entry.strip().startswith("over_trace"))


def reach_soon(name: str) -> None:
    """Call :func:`reach` some milliseconds later on the event loop, after the current answer is sent."""
    if name in _armed:
        asyncio.get_running_loop().call_later(_HANDED_OVER_S, reach, name)


arm(os.environ)

"""What other packages bring along: an entry point in one of our groups names a module that holds what our own modules
of that kind hold.

Whatever is wrong with one costs that one: it is logged, with the package and the cure, and left out.
"""

from __future__ import annotations

import importlib
import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from pandaeval_otel.base.names import escaped

_log = logging.getLogger(__name__)

_LONGEST = 500
"""Characters of what is told of an error."""


class NotUsableError(Exception):
    """What a module holds cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """``name``: of the entry point; ``origin``: the distribution and its version; ``value``: what ``module`` holds."""

    name: str
    origin: str
    module: ModuleType
    value: Any


@dataclass(frozen=True, slots=True)
class Plugins:
    """Those of one group that can be used, and the names of the entry points of those that cannot."""

    found: tuple[Plugin, ...]
    lost: tuple[str, ...]


def installed(group: str, attribute: str, check: Callable[[Plugin], None]) -> Plugins:
    """Every object named ``attribute`` in the modules that installed packages name under ``group``, in the order of the
    packages' names. ``check`` raises for one that cannot be used: :class:`NotUsableError`, or anything else.

    Imports the modules. Reads the metadata of all installed packages once in a process (some milliseconds). Does not
    raise; any thread.
    """
    found: list[Plugin] = []
    lost: list[str] = []
    for point in _points(group):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
        try:
            plugin = _loaded(point, origin, attribute)
            check(plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - other people's code costs itself, and nothing of ours
            lost.append(point.name)
            package = origin.partition(" ")[0]
            cure = f"update the package, or remove it (pip uninstall {package})"
            _log.error("%s: %s of %s is left out: %s; %s", group, point.name, origin, told(error), cure)
        else:
            found.append(plugin)
    return Plugins(tuple(found), tuple(lost))


def told(error: BaseException) -> str:
    """An error in one printable line, with the place in the code where it arose."""
    if isinstance(error, NotUsableError):
        text = str(error)
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
        where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames[1:] else ""
        text = f"{type(error).__name__}: {error}{where}"
    return escaped(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _loaded(point: EntryPoint, origin: str, attribute: str) -> Plugin:
    if point.attr:
        raise NotUsableError(f"it names {point.value}, and has to name a module: {point.module}")
    module = importlib.import_module(point.module)
    if not hasattr(module, attribute):
        raise NotUsableError(f"its module {point.module} holds no {attribute}")
    return Plugin(point.name, origin, module, getattr(module, attribute))


def _points(group: str) -> Sequence[EntryPoint]:
    found: list[EntryPoint] = [*_all().select(group=group)]
    return sorted(found, key=lambda point: (point.dist.name if point.dist is not None else "", point.name))


@cache
def _all() -> Any:
    """One look at the packages serves all groups. What it gives is of another type in Python 3.12."""
    return entry_points()

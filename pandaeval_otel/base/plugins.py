"""Discovers components in packages and entry points. Unusable components are logged and skipped."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from pandaeval_otel.base.names import escaped

_log = logging.getLogger(__name__)

_LONGEST = 500
"""Maximum length of an error in :func:`told`, in characters."""

_all: Callable[[], Any] = cache(entry_points)
"""Return the entry points of all groups, read once. Their type differs in Python 3.12."""
Walk = Callable[[Iterable[str], str], Iterator[pkgutil.ModuleInfo]]


def find(package: str, attribute: str) -> tuple[Any, ...]:
    """Return ``attribute`` of every public module below ``package``, in module order.

    Skips modules that begin with ``_``. Raises :class:`ImportError` with the module's name.
    """
    return tuple(getattr(module, attribute) for module in _modules(package) if hasattr(module, attribute))


def find_by_module(package: str, attribute: str) -> dict[str, Any]:
    """Return the objects of :func:`find` by file name, without subpackages."""
    here = (module for module in _modules(package, pkgutil.iter_modules) if hasattr(module, attribute))
    return {module.__name__.rpartition(".")[2]: getattr(module, attribute) for module in here}


@cache
def _modules(package: str, walk: Walk = pkgutil.walk_packages) -> tuple[ModuleType, ...]:
    root = importlib.import_module(package)
    found = []
    for info in walk(root.__path__, f"{package}."):
        if info.ispkg or any(part.startswith("_") for part in info.name.split(".")):
            continue
        try:
            found.append(importlib.import_module(info.name))
        except Exception as error:  # any exception, because the error must name the module
            raise ImportError(f"{info.name} could not be imported: {error}") from error
    return tuple(found)


class NotUsableError(Exception):
    """An unusable object. The message has the reason."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A component of an installed package. ``name``: the entry point; ``origin``: distribution and version."""

    name: str
    origin: str
    module: ModuleType
    value: Any


@dataclass(frozen=True, slots=True)
class Plugins:
    found: tuple[Plugin, ...]
    lost: tuple[str, ...]


def installed(group: str, attribute: str, check: Callable[[Plugin], None]) -> Plugins:
    """Return ``attribute`` of each plugin module of ``group``, ordered by package.

    ``check`` raises if an object is unusable. Imports the modules. Thread-safe; never raises.
    """
    found: list[Plugin] = []
    lost: list[str] = []
    for point in sorted(
        _all().select(group=group),
        key=lambda point: (point.dist.name if point.dist is not None else "", point.name),
    ):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
        try:
            if point.attr:
                raise NotUsableError(f"it names {point.value}, and has to name a module: {point.module}")
            module = importlib.import_module(point.module)
            if not hasattr(module, attribute):
                raise NotUsableError(f"its module {point.module} holds no {attribute}")
            plugin = Plugin(point.name, origin, module, getattr(module, attribute))
            check(plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an error of foreign code affects only that code
            lost.append(point.name)
            package = origin.partition(" ")[0]
            cure = f"update the package, or remove it (pip uninstall {package})"
            _log.error("%s: %s of %s is left out: %s; %s", group, point.name, origin, told(error), cure)
        else:
            found.append(plugin)
    return Plugins(tuple(found), tuple(lost))


def told(error: BaseException) -> str:
    """Format an error in a printable line, with its place in the code."""
    if isinstance(error, NotUsableError):
        text = str(error)
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
        where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames[1:] else ""
        text = f"{type(error).__name__}: {error}{where}"
    return escaped(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")

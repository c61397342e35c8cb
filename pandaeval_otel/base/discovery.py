"""Finds components instead of listing them: one new file in a package is one new component."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

Walk = Callable[[Iterable[str], str], Iterator[pkgutil.ModuleInfo]]


def find(package: str, attribute: str) -> tuple[Any, ...]:
    """The object named ``attribute`` of every public module below ``package``, in module order.

    Modules whose name begins with ``_`` are shared helpers and are passed over. Raises :class:`ImportError`, naming
    the file, when a module cannot be imported: a broken component must not vanish silently.
    """
    return tuple(getattr(module, attribute) for module in _modules(package) if hasattr(module, attribute))


def find_by_module(package: str, attribute: str) -> dict[str, Any]:
    """The same of the modules that stand in the folder of ``package`` itself, each under the name of its file."""
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
        except Exception as error:  # whatever a module raises: the error has to name the module
            raise ImportError(f"{info.name} could not be imported: {error}") from error
    return tuple(found)

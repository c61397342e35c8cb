"""Finds components instead of listing them: one new file in a package is one new component."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any


def find(package: str, attribute: str) -> tuple[Any, ...]:
    """The object named ``attribute`` of every public module below ``package``, in module order.

    Modules whose name begins with ``_`` are shared helpers and are passed over. Raises :class:`ImportError`, naming
    the file, when a module cannot be imported: a broken component must not vanish silently.
    """
    return tuple(getattr(module, attribute) for module in _modules(package) if hasattr(module, attribute))


def find_by_module(package: str, attribute: str) -> dict[str, Any]:
    """The same, each under the last part of its module's name."""
    found = {module.__name__.rpartition(".")[2]: module for module in _modules(package) if hasattr(module, attribute)}
    return {name: getattr(module, attribute) for name, module in found.items()}


@cache
def _modules(package: str) -> tuple[ModuleType, ...]:
    root = importlib.import_module(package)
    found = []
    for info in pkgutil.walk_packages(root.__path__, prefix=f"{package}."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        try:
            found.append(importlib.import_module(info.name))
        except Exception as error:  # whatever a module raises: the error has to name the module
            raise ImportError(f"{info.name} could not be imported: {error}") from error
    return tuple(found)

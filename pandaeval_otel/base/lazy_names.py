"""Lazily imported public names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module functions ``__getattr__`` and ``__dir__`` of ``package``.

    ``names`` maps a submodule to its public names, separated by spaces.

    >>> get, names = lazy_names("os", {"path": "join split"})
    >>> get("join").__name__, names()
    ('join', ['join', 'split'])
    """
    module_of = {name: module for module, listed in names.items() for name in listed.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get, lambda: sorted(module_of)

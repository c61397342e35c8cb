"""Loads user modules by file path or dotted name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from pandaeval_otel.base.plugins import told

_PREFIX = "_pandaeval_own_"
_LOADING = threading.RLock()
"""A second thread waits until a module has run. A module may load others."""


class ModuleLoadError(Exception):
    """A module cannot be imported. The message has the cause and the fix."""


def load_module(spec: str) -> ModuleType:
    """Import a module, once per process, by path (ends with ``.py`` or has a separator) or dotted name.

    Raises :class:`ModuleLoadError`.
    """
    is_path = spec.endswith(".py") or "/" in spec or os.sep in spec
    try:
        if not is_path:
            return _named(spec)
        with _LOADING:
            return _from_file(Path(spec).expanduser().resolve())
    except ModuleLoadError:
        raise
    except (Exception, SystemExit) as error:  # foreign code can raise any exception
        raise ModuleLoadError(f"{spec} cannot be imported: {told(error)}") from error


def source_digest(written: Any) -> str:
    """Return 12 hex digits of the source of an object's whole module. Raises ``ValueError`` without source."""
    module = sys.modules.get(written.__module__)
    try:
        source = inspect.getsource(module if module is not None else written)
    except (OSError, TypeError) as error:  # typed at a prompt, or not Python
        raise ValueError(f"{written.__name__}: its source cannot be read ({error})") from error
    return hashlib.blake2b(source.encode(), digest_size=6).hexdigest()


def _named(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # it exists, and a module that it imports does not
        cure = "write the path of its file, install its package, or put its folder into PYTHONPATH"
        raise ModuleLoadError(f"there is no module {name}; {cure}") from error


def _from_file(path: Path) -> ModuleType:
    name = f"{_PREFIX}{path.stem}_{hashlib.blake2b(os.fsencode(path), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    if path.suffix != ".py":
        raise ModuleLoadError(f"{path} is no Python file (.py)")
    if not path.is_file():
        raise ModuleLoadError(f"there is no file {path}; a path counts from the working directory")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # always set for a file that ends with .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: a dataclass in it looks its module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

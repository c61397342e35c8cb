"""The running version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the installed version; ``""`` in a checkout that is not installed."""
    try:
        return version("pandaeval-otel")
    except PackageNotFoundError:
        return ""


def release() -> str:
    try:
        return f"pandaeval {version('pandaeval-collector')}"
    except PackageNotFoundError:
        return "pandaeval, run from its source without being installed"

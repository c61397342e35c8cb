"""Which version runs: for programs, and for people (`pandaeval --version`, the collector's log)."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the version of the installed package; ``""`` in a checkout that is not installed."""
    try:
        return version("pandaeval-otel")
    except PackageNotFoundError:
        return ""


def release() -> str:
    """Return the name and version of the running collector, such as ``pandaeval 0.1.0``."""
    try:
        return f"pandaeval {version('pandaeval-collector')}"
    except PackageNotFoundError:
        return "pandaeval, run from its source without being installed"

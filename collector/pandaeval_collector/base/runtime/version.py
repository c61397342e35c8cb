"""Which version of the package runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version of the installed package; ``""`` in a checkout that is not installed."""
    try:
        return version("pandaeval-otel")
    except PackageNotFoundError:
        return ""

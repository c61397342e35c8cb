"""What is running: for `pandaeval --version`, and for the collector's log."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def release() -> str:
    """The name and version of the running collector, such as ``pandaeval 0.1.0``."""
    try:
        return f"pandaeval {version('pandaeval-collector')}"
    except PackageNotFoundError:
        return "pandaeval, run from its source without being installed"

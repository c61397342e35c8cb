"""What is running: for `pandaeval --version`, and for the collector's log."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from pandaeval_otel.compiled import is_compiled


def release() -> str:
    """Such as ``pandaeval 0.1.0``, with ``(compiled)`` behind it where the hot modules are machine code."""
    try:
        name = f"pandaeval {version('pandaeval-otel')}"
    except PackageNotFoundError:
        name = "pandaeval, run from its source without being installed"
    return f"{name} (compiled)" if is_compiled() else name

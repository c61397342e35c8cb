"""Whether this process runs the Python sources or a build with compiled modules (hatch_build.py)."""

from __future__ import annotations

from pandaeval_otel import _json


def is_compiled() -> bool:
    """Whether the modules that most of the time is spent in are machine code here."""
    return not str(_json.__file__).endswith(".py")

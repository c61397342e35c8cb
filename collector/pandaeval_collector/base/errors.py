"""Errors that users see as a sentence instead of a traceback."""

from __future__ import annotations


class UserError(Exception):
    """An error that the user can fix. The command line prints it and exits with 2."""


_NO_EXTRA = ("pandaeval-collector", "./collector")


def installation(extra: str) -> str:
    """Return commands that install the collector with an extra (``""``: none), from an index and a clone."""
    named, below = (f'"pandaeval-collector[{extra}]"', f'"./collector[{extra}]"') if extra else _NO_EXTRA
    return f"pip install {named} (in a clone of the repository: pip install . {below})"

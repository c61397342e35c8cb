"""The one kind of error that people see as a sentence instead of a traceback."""

from __future__ import annotations

from typing import ClassVar


class UserError(Exception):
    """Something that the user can put right: a bad config, an unreadable file, a missing secret.

    ``str(error)`` is the whole message; the command line prints it to stderr and leaves with ``exit_code``.
    """

    exit_code: ClassVar[int] = 2


_NO_EXTRA = ("pandaeval-collector", "./collector")


def installation(extra: str) -> str:
    """Return the commands that install the collector with an extra (``""``: none), from an index and from a clone."""
    named, below = (f'"pandaeval-collector[{extra}]"', f'"./collector[{extra}]"') if extra else _NO_EXTRA
    return f"pip install {named} (in a clone of the repository: pip install . {below})"

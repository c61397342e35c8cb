"""The one kind of error that people see as a sentence instead of a traceback."""

from __future__ import annotations

from typing import ClassVar


class UserError(Exception):
    """Something that the user can put right: a bad config, an unreadable file, a missing secret.

    ``str(error)`` is the whole message; the command line prints it to stderr and leaves with ``exit_code``.
    """

    exit_code: ClassVar[int] = 2


def installation(extra: str) -> str:
    """How to install an extra of this package, from an index and from a clone."""
    return f'pip install "pandaeval-otel[{extra}]" (in a clone of the repository: pip install ".[{extra}]")'

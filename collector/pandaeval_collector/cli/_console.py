"""A console that leaves it to the application what a reader's leaving means."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class PipedConsole(Console):
    """Rich's own leaves with 1 when its reader, such as `head`, has enough; with us, 1 is a missed threshold."""

    def on_broken_pipe(self) -> NoReturn:
        """Raises :class:`BrokenPipeError`, as any other writer would."""
        raise BrokenPipeError

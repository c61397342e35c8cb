"""Text files of people, of which no more is read than may be in them: one may be a device, or grow meanwhile."""

from __future__ import annotations

from pathlib import Path


class TooLongError(Exception):
    """A file holds more than it may."""


def read_text(path: Path, most: int) -> str:
    """The UTF-8 text of a file of at most ``most`` bytes. Raises :class:`TooLongError`, ``OSError`` and
    ``UnicodeDecodeError``."""
    with path.open("rb") as file:
        held = file.read(most + 1)
    if len(held) > most:
        raise TooLongError
    return held.decode("utf-8-sig")

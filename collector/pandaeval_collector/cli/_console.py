"""A console that obeys nothing in what it prints, and leaves it to the application what a reader's leaving means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, NoReturn, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pandaeval_collector.base.untrusted.printable import printable
from pandaeval_collector.cli._terminal import unproxied


class PlainConsole(Console):
    """Every piece of text is made printable after markup, which is off, and before styles, which are ours."""

    @property
    def file(self) -> IO[str]:
        """Where it writes: past the guards of the standard streams, which would write styles out too."""
        return unproxied(cast(TextIO, Console.file.__get__(self)))

    @file.setter
    def file(self, file: IO[str]) -> None:
        self._file = file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's, with unsafe characters written out."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> NoReturn:
        """Raises :class:`BrokenPipeError`, as any other writer would: rich's own leaves with 1 when its reader, such as
        `head`, has enough; with us, 1 is a missed threshold."""
        raise BrokenPipeError

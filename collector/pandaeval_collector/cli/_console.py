"""A console that obeys nothing in what it prints, and leaves it to the application what a reader's leaving means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, NoReturn, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pandaeval_collector.base.untrusted.printable import printable
from pandaeval_collector.cli._terminal import unproxied


class PlainConsole(Console):
    """A rich console that prints every piece of text with unsafe characters written out. Our own styles stay."""

    @property
    def file(self) -> IO[str]:
        """The stream that the console writes to: the one below the guards, which would write styles out, too."""
        return unproxied(cast(TextIO, Console.file.__get__(self)))

    @file.setter
    def file(self, file: IO[str]) -> None:
        self._file = file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders as rich does, with unsafe characters written out."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> NoReturn:
        """Raises :class:`BrokenPipeError` when the reader, such as `head`, has enough. Rich itself would leave with 1,
        which here means a missed threshold."""
        raise BrokenPipeError

"""The one way to the terminal: whatever a command prints, nothing in it is obeyed.

Texts of traces, names of files and answers of servers may hold sequences that move the cursor, change the title, write
into the clipboard, or hide and reorder what stands beside them. Standard output (as far as it is a terminal) and
standard error are replaced by streams that write such characters out; what our consoles style is written past them,
after the console has done the same to each piece of text (:mod:`pandaeval_collector.cli._output`).
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO, cast

from pandaeval_collector.base.untrusted.printable import is_printable, printable, printable_json


class _Guarded:
    """A text stream that passes text on to another one, with unsafe characters written out as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.buffer = _GuardedBytes(self)

    @property
    def rich_proxied_file(self) -> TextIO:
        """The stream that rich's consoles write to, found under this name on every stream."""
        return unproxied(self._stream)

    def write(self, text: str) -> int:
        self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _GuardedBytes(io.BufferedIOBase):
    """The ``buffer`` of a guarded stream: decodes the UTF-8 that is written to it."""

    def __init__(self, text: _Guarded) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._text.write(self._decoder.decode(bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._text.flush()


def unproxied(stream: TextIO) -> TextIO:
    """Returns the stream below all guards, and below those that rich installs while it keeps a display."""
    while (below := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = below
    return stream


@contextmanager
def guarded() -> Iterator[None]:
    """Guards standard error, and standard output where it is a terminal: in files and pipes bytes stay what they are.
    Within a display that rich keeps on the terminal, enter this once more: rich replaces the streams by its own, which
    pass control sequences on."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None and sys.stdout.isatty():
        sys.stdout = _guard(sys.stdout)
    if sys.stderr is not None:
        sys.stderr = _guard(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _guard(stream: TextIO) -> TextIO:
    return stream if isinstance(cast(object, stream), _Guarded) else cast(TextIO, _Guarded(stream))


def harmless_arguments() -> bool:
    """Returns whether all words of the command line are printable: Typer's framed messages repeat them without our
    guard."""
    return all(is_printable(argument) for argument in sys.argv)


def write_json(line: str | bytes) -> None:
    """Writes a line of JSON to standard output: unchanged, or on a terminal with unsafe characters as JSON escapes."""
    if sys.stdout.isatty():
        sys.stdout.write(printable_json(line if isinstance(line, str) else line.decode()) + "\n")
    elif isinstance(line, str):
        sys.stdout.write(line + "\n")
    else:
        cast(BinaryIO, sys.stdout.buffer).write(line + b"\n")

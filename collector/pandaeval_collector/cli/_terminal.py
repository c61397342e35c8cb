"""The one way to the terminal: whatever a command prints, nothing in it is obeyed.

Texts of traces, names of files and answers of servers may hold sequences that move the cursor, change the title, write
into the clipboard, or hide and reorder what stands beside them. Standard output (as far as it is a terminal) and
standard error are replaced by streams that write such characters out; what our consoles style is written past them,
after the console has done the same to each piece of text (:mod:`pandaeval_collector.cli._console`).
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
    """A text stream in front of another, whose unsafe characters are written out."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.buffer = _GuardedBytes(self)

    @property
    def rich_proxied_file(self) -> TextIO:
        """Where rich's consoles write, as they ask each stream."""
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
    """For what writes UTF-8 instead of text."""

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
    """The stream below all guards, and below the ones that rich puts there while it keeps a display."""
    while (below := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = below
    return stream


@contextmanager
def guarded() -> Iterator[None]:
    """Guards standard error, and standard output where it is a terminal: in files and pipes bytes stay what they are.
    Within a display that rich keeps on the terminal it has to be entered once more, since rich puts streams of its own
    there, which obey sequences."""
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
    """Whether none of the command line's own words would have to be written out: framed messages about them are not
    ours."""
    return all(is_printable(argument) for argument in sys.argv)


def write_json(line: str | bytes) -> None:
    """A line of JSON to standard output: as it is, or on a terminal with unsafe characters as JSON escapes them."""
    if sys.stdout.isatty():
        sys.stdout.write(printable_json(line if isinstance(line, str) else line.decode()) + "\n")
    elif isinstance(line, str):
        sys.stdout.write(line + "\n")
    else:
        cast(BinaryIO, sys.stdout.buffer).write(line + b"\n")

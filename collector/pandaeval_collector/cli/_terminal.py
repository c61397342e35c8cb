"""Guards the terminal: control sequences in output are escaped.

Standard output (on a terminal) and standard error are replaced by escaping streams. Our consoles escape texts
themselves (:mod:`pandaeval_collector.cli._output`).
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
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.buffer = _GuardedBytes(self)

    @property
    def rich_proxied_file(self) -> TextIO:
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
    def __init__(self, text: _Guarded) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._text.write(self._decoder.decode(bytes(data)))
        return len(data)

    def flush(self) -> None:
        if not self._text.closed:  # Python 3.13 reports an error of the flush that ends an unused stream
            self._text.flush()


def unproxied(stream: TextIO) -> TextIO:
    while (below := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = below
    return stream


@contextmanager
def guarded() -> Iterator[None]:
    """Guard standard error, and standard output on a terminal. Enter it again within a rich display."""
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
    """Return whether the command line is printable. Typer repeats it unguarded."""
    return all(is_printable(argument) for argument in sys.argv)


def write_json(line: str | bytes) -> None:
    """Write a JSON line to standard output; unsafe characters are escaped on a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(printable_json(line if isinstance(line, str) else line.decode()) + "\n")
    elif isinstance(line, str):
        sys.stdout.write(line + "\n")
    else:
        cast(BinaryIO, sys.stdout.buffer).write(line + b"\n")

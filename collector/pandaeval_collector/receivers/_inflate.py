"""Decompresses bodies in pieces of at most 64 KiB (gzip, deflate) or 8 MiB (zstd).

The caller counts bytes and stops at its limit.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import zstandard

from pandaeval_collector.receivers import Malformed, TooMany, UnsupportedMedia

_PIECE = 64 * 1024
_ZSTD_SLICE = 256  # bytes of input at once; times 32768, the most that zstd makes of a byte, it is 8 MiB
_ZSTD_WINDOW = 8 * 1024 * 1024  # the size that RFC 8878 recommends; a frame could request gigabytes
_MOST_FRAMES = 1024
"""Maximum gzip members or zstd frames per body. Block compressors need some hundreds; an empty frame is as slow to open
as a large frame.
"""
_GZIP, _ZLIB = 31, 15  # zlib's window bits
Pieces = Callable[[Any, bytes], Iterator[bytes]]


class Inflater:
    """Decompresses a body; the base class passes it through."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decompressed ``data``. Raises :class:`Malformed`, or :class:`TooMany` frames."""
        yield data

    def finish(self) -> None:
        """Raise :class:`Malformed` if the body is incomplete."""


def inflater_for(encoding: str) -> Inflater:
    """Return the inflater for a ``content-encoding``. Raises :class:`UnsupportedMedia`."""
    match encoding.strip().lower():
        case "" | "identity":
            return Inflater()
        case "gzip":
            return _Framed("gzip", "gzip members", partial(zlib.decompressobj, _GZIP), _zlib_pieces, sys.maxsize)
        case "deflate":
            return _Framed("deflate", "streams", partial(zlib.decompressobj, _ZLIB), _zlib_pieces, sys.maxsize)
        case "zstd":
            return _Framed("zstd", "zstd frames", _zstd_stream, _zstd_pieces, _ZSTD_SLICE)
    raise UnsupportedMedia(f"content-encoding {encoding[:40]!r} is none of identity, gzip, zstd, deflate")


class _Framed(Inflater):
    """A body of counted frames. ``pieces`` decompresses at most ``at_once`` bytes."""

    def __init__(self, kind: str, frames: str, open_frame: Callable[[], Any], pieces: Pieces, at_once: int) -> None:
        self._kind, self._frames, self._open_frame = kind, frames, open_frame
        self._pieces, self._at_once = pieces, at_once
        self._stream, self._opened, self._began = open_frame(), 1, False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), self._at_once):
            part = data[start : start + self._at_once]
            while part:
                if self._stream.eof:
                    self._opened += 1
                    if self._opened > _MOST_FRAMES:
                        raise TooMany(f"the body has more than {_MOST_FRAMES} {self._frames}: compress it as one")
                    self._stream = self._open_frame()
                self._began, stream = True, self._stream
                yield from self._pieces(stream, part)
                part = stream.unused_data

    def finish(self) -> None:
        if self._began and not self._stream.eof:
            raise Malformed(f"the {self._kind} body ends too early")


def _zlib_pieces(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    try:
        while data and not stream.eof:
            yield stream.decompress(data, _PIECE)
            data = stream.unconsumed_tail
    except zlib.error as error:
        raise Malformed(f"the compressed body is damaged: {error}") from error


def _zstd_pieces(stream: Any, data: bytes) -> Iterator[bytes]:
    try:
        yield stream.decompress(data)
    except zstandard.ZstdError as error:
        raise Malformed(f"the compressed body is damaged: {error}") from error


def _zstd_stream() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

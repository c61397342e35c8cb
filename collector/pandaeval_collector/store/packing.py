"""How contents lie on disk: compressed where that pays."""

from __future__ import annotations

import threading

import zstandard

_COMPRESS_FROM = 4096
_LEVEL = -1  # a quarter less CPU time than level 1 for an eighth more bytes, on real agent traces


def pack(data: bytes) -> tuple[bool, bytes]:
    """Whether it was compressed, and what is to be stored."""
    packed = len(data) > _COMPRESS_FROM
    return packed, compress(data) if packed else data


def unpack(packed: int, data: bytes) -> bytes:
    """Raises ``zstandard.ZstdError`` for what was damaged."""
    return decompress(data) if packed else data


def compress(data: bytes) -> bytes:
    """Whatever its size. Safe on any thread."""
    return _own.compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """Raises ``zstandard.ZstdError`` for what was damaged. Safe on any thread."""
    return _own.decompressor.decompress(data)


class _Zstd(threading.local):
    """A pair for each thread that needs one: neither may be used by two at a time."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Zstd()

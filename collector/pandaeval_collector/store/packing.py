"""How contents lie on disk: compressed where that pays."""

from __future__ import annotations

import threading

import zstandard

_COMPRESS_FROM = 4096
_LEVEL = -1  # a quarter less CPU time than level 1 for an eighth more bytes, on real agent traces


class Packing:
    """Compressors, one for each thread that needs one."""

    def __init__(self) -> None:
        self._local = threading.local()

    def pack(self, data: bytes) -> tuple[bool, bytes]:
        """Whether it was compressed, and what is to be stored."""
        packed = len(data) > _COMPRESS_FROM
        return packed, self._zstd()[0].compress(data) if packed else data

    def unpack(self, packed: int, data: bytes) -> bytes:
        """Raises ``zstandard.ZstdError`` for what was damaged."""
        return self._zstd()[1].decompress(data) if packed else data

    def _zstd(self) -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
        pair: tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor] | None = getattr(self._local, "pair", None)
        if pair is None:
            pair = self._local.pair = (zstandard.ZstdCompressor(level=_LEVEL), zstandard.ZstdDecompressor())
        return pair

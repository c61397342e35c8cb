"""Details of many traces, set aside on disk until the page is written."""

from __future__ import annotations

import tempfile
import zlib
from typing import Any

import orjson


class Spool:
    """Keeps JSON values, compressed, in a temporary file without a name. One thread."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._end = 0

    def put(self, value: Any) -> tuple[int, int]:
        """Stores a value, and returns the place with which :meth:`get` reads it."""
        packed = zlib.compress(orjson.dumps(value), 1)
        self._file.seek(self._end)
        self._file.write(packed)
        place = self._end, len(packed)
        self._end += len(packed)
        return place

    def get(self, place: tuple[int, int]) -> Any:
        self._file.seek(place[0])
        return orjson.loads(zlib.decompress(self._file.read(place[1])))

    def close(self) -> None:
        self._file.close()

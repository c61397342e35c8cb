"""Decompression in pieces; tiny frames are rejected."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard

from pandaeval_collector.receivers import TooMany
from pandaeval_collector.receivers._inflate import inflater_for

COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}


def _inflated(encoding: str, body: bytes, piece: int) -> bytes:
    inflater = inflater_for(encoding)
    found = [each for at in range(0, len(body), piece) for each in inflater.feed(body[at : at + piece])]
    inflater.finish()
    return b"".join(found)


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_a_body_of_several_compressed_blocks_is_read(encoding: str, piece: int) -> None:
    blocks = [bytes([number % 256]) * number for number in range(1024)]
    body = b"".join(map(COMPRESS[encoding], blocks))
    assert _inflated(encoding, body, piece) == b"".join(blocks)


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("content", [b"", b"x"])
def test_too_many_compressed_blocks_are_rejected_before_the_rest_is_read(encoding: str, content: bytes) -> None:
    frame = COMPRESS[encoding](content)
    inflater = inflater_for(encoding)
    for _ in range(1024):
        assert b"".join(inflater.feed(frame)) == content
    with pytest.raises(TooMany, match=r"has more than 1024 (gzip members|zstd frames): compress it as one"):
        next(inflater.feed(frame * 750_000))


def test_skippable_zstd_frames_count_towards_the_limit() -> None:
    skippable = bytes.fromhex("502a4d1800000000")
    with pytest.raises(TooMany, match="1024 zstd frames"):
        _inflated("zstd", skippable * 1025, 1 << 16)

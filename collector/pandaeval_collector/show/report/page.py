"""The data of a report as one HTML file that loads nothing.

Data lies in the file as base64 of deflated JSON: an index that is read at once, and blocks of traces that are read when
one of them is looked at. The page builds itself from it by ``textContent`` alone.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import orjson

from pandaeval_collector.show.report.shell import file_shell
from pandaeval_collector.show.report.text import clean_json

_BLOCK = 256 * 1024
"""Bytes of JSON in a block."""


def write_page(out: TextIO, index: Mapping[str, Any], details: Iterable[tuple[int, Mapping[str, Any]]]) -> int:
    """Writes the page; gives its size in bytes. ``details``: (position of the trace, its details), neighbours in the
    report together. Memory does not grow with them."""
    head, foot = file_shell().split("<!-- data -->")
    size = _put(out, head)
    blocks: dict[int, int] = {}
    for number, (members, data) in enumerate(_blocks(details)):
        blocks.update(dict.fromkeys(members, number))
        size += _put(out, _embedded(f"block-{number}", data))
    traces = [{**trace, "block": blocks[at]} if at in blocks else trace for at, trace in enumerate(index["traces"])]
    size += _put(out, _embedded("index", clean_json(orjson.dumps({**index, "traces": traces}, option=_LENIENT))))
    return size + _put(out, foot)


def _blocks(details: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterable[tuple[list[int], bytes]]:
    members: list[int] = []
    parts: list[bytes] = []
    size = 0
    for at, each in details:
        part = b'"%d":%s' % (at, clean_json(orjson.dumps(each, option=_LENIENT)))
        members.append(at)
        parts.append(part)
        size += len(part)
        if size >= _BLOCK:
            yield members, b"{%s}" % b",".join(parts)
            members, parts, size = [], [], 0
    if parts:
        yield members, b"{%s}" % b",".join(parts)


_LENIENT = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def _embedded(name: str, data: bytes) -> str:
    """A data block: its alphabet cannot end the element that holds it."""
    packed = base64.b64encode(zlib.compress(data, 6)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>\n'


def _put(out: TextIO, text: str) -> int:
    out.write(text)
    return len(text.encode())
